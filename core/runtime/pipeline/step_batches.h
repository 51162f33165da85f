// One rank's microbatches of a step: loaded where the pipeline needs their tokens, and counted, since losses are
// divided by the tokens of the whole global batch. Thread rule: its rank's thread.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "core/runtime/components.h"

namespace ranklab {

int64_t count_targets(const Batch& batch);  // targets that are not -100; synchronizes with the device

// The batches of all microbatches of the schedule. They have tokens, targets and documents on ranks that need them;
// elsewhere only the samples' indices, which dropout needs. Throws kInvalidArgument for documents that the stages in
// the middle of the pipeline would not know.
std::vector<Batch> load_batches(StepContext& c, const Schedule& schedule,
                                const std::function<Batch(int64_t microbatch)>& load_batch);

// Tokens of the microbatches whose loss this rank computes.
int64_t tokens_of_losses(StepContext& c, const Schedule& schedule, const std::vector<Batch>& batches);

// Targets of the global batch, or of the part that a DiLoCo replica has of it, by which losses are divided: ranks with
// fewer tokens then weigh less than in a mean over ranks. 1 on ranks without a last stage. Collective over dp where the
// data do not say it. Throws kInvalidArgument if no token has a target.
int64_t tokens_of_gradient(StepContext& c, const Schedule& whole, const std::vector<Batch>& batches);

}  // namespace ranklab
