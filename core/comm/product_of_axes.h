// How many ranks a layout's sizes ask for, where nobody says how many there are. Torch-free. Thread rule: pure.
#pragma once
#include "core/comm/parallel_dims.h"

namespace ranklab {

// dp x cp x tp x pp. A size below 1 counts as 1: ParallelDims::resolved() refuses it by its own name. Saturates at the
// largest int, which resolved() then refuses as a world of too many ranks.
int product_of_axes(const ParallelDims& dims);

}  // namespace ranklab
