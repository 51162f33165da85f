// Orders tokens by expert, or by rank, and counts them. Cost of a count: one pass. Unlike with ATen's bincount, which
// reads the largest value before it allocates the result, the host does not wait for a GPU. Thread rule: its rank's
// thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace ranklab {

// values [N] int64 from 0 to bins - 1 -> [bins] int64, on the same device.
at::Tensor bin_counts(const at::Tensor& values, int64_t bins);
// The indices [N] that sort values [N]; equal values stay in their order.
at::Tensor order_by_value(const at::Tensor& values);
// Of sorted values: how many equal ones are before each.
at::Tensor numbers_in_bins(const at::Tensor& sorted, int64_t bins);

}  // namespace ranklab
