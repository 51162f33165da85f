// The table of `ranklab model info FOLDER --stats`: the type, shape and statistics of every tensor of a saved model.
// Thread rule: pure functions.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/common/style.h"
#include "core/checkpoint/tensor_source.h"

namespace ranklab {

std::string stats_text(const TensorSource& tensors, const Style& style);
nlohmann::ordered_json stats_json(const TensorSource& tensors);

}  // namespace ranklab
