// Derives --global-batch-size and --train-iters where the user gave the batch in tokens (--global-batch-tokens) or the
// length of the run in sequences (--train-samples). This happens when the sources of settings are merged, so that code
// which adapts a configuration later changes the numbers that count. Thread rule: pure function.
#pragma once
#include <map>
#include <string>

#include "core/config/train_config.h"

namespace ranklab {

// Fills global_batch_size and train_iters, whose origins become those of the settings from which they are derived. As
// in Megatron-LM, --train-samples is rounded down to whole steps, and the remaining sequences are not trained on.
// Throws kInvalidArgument if a source also gave the derived number with a different value.
void settle_batch(TrainConfig& config, std::map<std::string, std::string>& origins);

// The length of the run, in the unit in which it was given: "--train-samples 3200" or "--train-iters 100".
std::string run_length_text(const TrainConfig& config);

// The number of steps of the whole run. One of --train-samples that resumes with other batches (plan_from()) takes as
// many steps as fit in the samples that are left, whatever steps all of its samples would have made.
int64_t steps_of_run(const RunPlan& plan);

// False for a run of --train-samples that resumes: its steps_of_run() follow from the checkpoint.
bool knows_its_end(const TrainConfig& config);

}  // namespace ranklab
