// The roofline of a model (roofline.h) in words and as JSON. Thread rule: pure.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/common/style.h"
#include "core/config/train_config.h"

namespace ranklab {

std::string roofline_text(const RunPlan& plan, const Style& style);
// The number of ranks over which experts must be spread, in decoding and in training.
std::vector<std::string> spread_lines(const RunPlan& plan);
nlohmann::ordered_json roofline_json(const RunPlan& plan);

}  // namespace ranklab
