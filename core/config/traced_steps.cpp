#include "core/config/traced_steps.h"

#include <algorithm>

namespace ranklab {
namespace {

constexpr int64_t kSteps = 20;  // as many as make a trace that a viewer opens at once

}  // namespace

TracedSteps traced_steps(const TrainConfig& config, int64_t begin) {
  const int64_t first = config.trace_step_start < 0 ? begin : config.trace_step_start;
  return {first, config.trace_step_end < 0 ? first + kSteps : config.trace_step_end};
}

bool traces_a_step(const TrainConfig& config, int64_t begin, int64_t end) {
  const TracedSteps traced = traced_steps(config, begin);
  return config.trace && std::min(end, traced.end) > std::max(begin, traced.first);
}

std::string no_step_text(const TrainConfig& config, int64_t begin, int64_t end) {
  if (!config.trace || end <= begin || traces_a_step(config, begin, end)) return "";
  const TracedSteps traced = traced_steps(config, begin);
  const auto number = [](int64_t step) { return std::to_string(step); };
  return "no step: this run's are " + number(begin) + " to " + number(end - 1) + ", and " + number(traced.first) +
         " to " + number(traced.end - 1) + " are traced (--trace-step-start, --trace-step-end)";
}

}  // namespace ranklab
