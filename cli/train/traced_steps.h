// Which of a run's steps its trace holds, as train's outputs tell it. Torch-free. Thread rule: pure.
#pragma once
#include <cstdint>
#include <string>

#include "core/config/train_config.h"

namespace ranklab {

// Whether a step of first .. end - 1 is traced: otherwise the trace's file is empty, and nobody is told to open it.
bool traces_a_step(const TrainConfig& config, int64_t first, int64_t end);
// "no step: this run's are 0 to 0, and 5 to 19 are traced (...)"; "" where there is no trace, one with a step in it, or
// no step at all.
std::string no_step_text(const TrainConfig& config, int64_t first, int64_t end);

}  // namespace ranklab
