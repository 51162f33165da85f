// Random tokens of which later samples count fewer: the last one none. A mean of means over microbatches or
// data-parallel ranks shows at once. Tokens follow from step and sample alone. Thread rule: pure.
#pragma once
#include <memory>

#include "core/runtime/components.h"

namespace ranklab {

// Samples [first_sample, first_sample + count) of a step's global batch.
Batch uneven_batch(const RankContext& ctx, const RunPlan& plan, int64_t step, int64_t first_sample, int64_t count);
std::shared_ptr<DataProvider> uneven_batches();

}  // namespace ranklab
