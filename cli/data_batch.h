// `ranklab data batch --step N`: the tokens that a run with these settings trains on in a step, by rank, microbatch and
// sequence, and where in the data they lie. It opens the data and draws the batch as the run does
// (core/runtime/training_data.h). Thread rule: one thread.
#pragma once
#include "cli/command.h"

namespace ranklab {

CommandAction add_data_batch(CommandLine& app);

}  // namespace ranklab
