// A run's pipeline in words and numbers: what the start banner and --dry-run say of it. Pure.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/runtime/train_config.h"

namespace ranklab {

// "1f1b, 4 stages of 1 layer; bubble 27.3 % of the total where F, B and W take equally long"
std::string pipeline_text(const RunPlan& plan);
nlohmann::ordered_json pipeline_json(const RunPlan& plan);

}  // namespace ranklab
