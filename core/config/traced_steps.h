// Which of a run's steps its trace and its profile hold. Torch-free. Thread rule: pure.
#pragma once
#include <cstdint>
#include <string>

#include "core/config/train_config.h"

namespace ranklab {

struct TracedSteps {
  int64_t first = 0, end = 0;  // exclusive

  bool has(int64_t step) const { return step >= first && step < end; }
};

// Of a run whose first step is `begin`: a run that goes on from a checkpoint traces its own first steps where none are
// asked for.
TracedSteps traced_steps(const TrainConfig& config, int64_t begin);

// Whether a step of begin .. end - 1 is traced: otherwise the trace's file is empty, and nobody is told to open it.
bool traces_a_step(const TrainConfig& config, int64_t begin, int64_t end);
// "no step: this run's are 0 to 0, and 5 to 24 are traced (...)"; "" where there is no trace, one with a step in it, or
// no step at all.
std::string no_step_text(const TrainConfig& config, int64_t begin, int64_t end);

}  // namespace ranklab
