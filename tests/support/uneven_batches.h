// Random tokens, of which fewer count in later samples and none in the last one, so a mean of means over microbatches
// or data-parallel ranks is noticed at once. Tokens depend only on step and sample. Thread rule: pure.
#pragma once
#include <memory>

#include "core/runtime/components.h"

namespace ranklab {

// Samples [first_sample, first_sample + count) of the global batch of a step.
Batch uneven_batch(const RankContext& ctx, const RunPlan& plan, int64_t step, int64_t first_sample, int64_t count);
std::shared_ptr<DataProvider> uneven_batches();

}  // namespace ranklab
