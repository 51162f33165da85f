// What the subcommands of `ranklab ckpt` say in the same words. Thread rule: pure functions.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/checkpoint/tensor_diff.h"

namespace ranklab {

using LongUnsigned = unsigned long long;  // printf's

std::string both_sizes(uint64_t bytes);                  // "12345 bytes (12.1 KiB)"
std::string metadata_text(const std::string& value);     // one line, with escapes for what a terminal should not get
std::string difference_text(const TensorDifference& d);  // without the tensor's name
nlohmann::ordered_json difference_json(const TensorDifference& d);

}  // namespace ranklab
