// How many tokens go to each expert or rank. Cost: one pass; the host waits for no GPU, whose own operator reads the
// largest number before it makes the result. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace ranklab {

// values [N] int64 from 0 to bins - 1 -> [bins] int64, on their device.
at::Tensor bin_counts(const at::Tensor& values, int64_t bins);

}  // namespace ranklab
