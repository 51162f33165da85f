// The number of ranks that a layout's sizes need, for use where no world size is given. Torch-free. Thread rule: pure.
#pragma once
#include "core/comm/parallel_dims.h"

namespace ranklab {

// dp x cp x tp x pp. A size below 1 counts as 1, because ParallelDims::resolved() refuses it by its own name. Saturates
// at the largest int, which resolved() then refuses as too many ranks.
int product_of_axes(const ParallelDims& dims);

}  // namespace ranklab
