// The estimate of `ranklab plan memory` as text and as JSON, compared with measurements. Thread rule: pure.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/common/style.h"
#include "core/config/train_config.h"
#include "core/runtime/memory/measure.h"

namespace ranklab {

// `measured`: one per rank, or empty.
std::string plan_memory_text(const RunPlan& plan, const std::vector<MeasuredMemory>& measured, const Style& style);
nlohmann::ordered_json plan_memory_json(const RunPlan& plan, const std::vector<MeasuredMemory>& measured);

}  // namespace ranklab
