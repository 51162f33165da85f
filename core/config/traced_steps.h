// Which steps of a run its trace and its profile cover. Torch-free. Thread rule: pure.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>

#include "core/config/train_config.h"

namespace ranklab {

struct TracedSteps {
  int64_t first = 0, end = 0;  // exclusive

  bool has(int64_t step) const { return step >= first && step < end; }
};

// For a run whose first step is `begin`. If the user did not choose the steps, a run that resumes from a checkpoint
// traces its own first steps.
inline TracedSteps traced_steps(const TrainConfig& config, int64_t begin) {
  constexpr int64_t kSteps = 20;  // enough to see a pattern, few enough that a viewer opens the trace at once
  const int64_t first = config.trace_step_start < 0 ? begin : config.trace_step_start;
  return {first, config.trace_step_end < 0 ? first + kSteps : config.trace_step_end};
}

// Whether any of the steps begin .. end - 1 is traced. If not, the trace file is empty, and the user is not told to
// open it.
inline bool traces_a_step(const TrainConfig& config, int64_t begin, int64_t end) {
  const TracedSteps traced = traced_steps(config, begin);
  return config.trace && std::min(end, traced.end) > std::max(begin, traced.first);
}

// "no step: this run's are 0 to 0, and 5 to 24 are traced (...)". "" if tracing is off, if some step is traced, or if
// the run has no steps.
inline std::string no_step_text(const TrainConfig& config, int64_t begin, int64_t end) {
  if (!config.trace || end <= begin || traces_a_step(config, begin, end)) return "";
  const TracedSteps traced = traced_steps(config, begin);
  const auto number = [](int64_t step) { return std::to_string(step); };
  const std::string asked = traced.end > traced.first
                                ? number(traced.first) + " to " + number(traced.end - 1) + " are traced"
                                : "none from " + number(traced.end) + " on is traced";
  return "no step: this run's are " + number(begin) + " to " + number(end - 1) + ", and " + asked +
         " (--trace-step-start, --trace-step-end)";
}

}  // namespace ranklab
