#include "cli/train/traced_steps.h"

#include <algorithm>

#include "core/base/text.h"

namespace ranklab {

bool traces_a_step(const TrainConfig& config, int64_t first, int64_t end) {
  return config.trace && std::min(end, config.trace_step_end) > std::max(first, config.trace_step_start);
}

std::string no_step_text(const TrainConfig& config, int64_t first, int64_t end) {
  if (!config.trace || end <= first || traces_a_step(config, first, end)) return "";
  const auto number = [](int64_t step) { return std::to_string(step); };
  return "no step: this run's are " + number(first) + " to " + number(end - 1) + ", and " +
         number(config.trace_step_start) + " to " + number(config.trace_step_end - 1) +
         " are traced (--trace-step-start, --trace-step-end)";
}

}  // namespace ranklab
