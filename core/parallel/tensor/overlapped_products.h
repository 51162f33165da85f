// Products of sequence parallelism whose collective overlaps with them (Megatron-LM's --tp-comm-overlap, PyTorch's
// asynchronous tensor parallelism; Wang et al., ASPLOS 2023, "Overlap Communication with Dependent Computation via
// Decomposition in Large Deep Learning Models"). A rank's positions are cut into up to 4 pieces: while one is
// multiplied, the next is gathered, or the one before is reduced. Sums over ranks are those of one collective, bit for
// bit. Cost: the collective in pieces, each with its latency, of which only the first (last) is exposed where products
// take longer. Legend: S positions of all ranks, s
// = S / tp of this rank, weight [in, out]. Thread rule: its rank's thread; every member of the group makes the same
// calls; not recorded by autograd.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/parallel/tensor_parallel.h"

namespace ranklab {

// all_gather(x) weight: x [s, .., in] -> [S, .., out]. `gathered` (null: not wanted) receives all_gather(x).
at::Tensor product_of_gathered(const at::Tensor& x, const at::Tensor& weight, const TensorParallel& tp,
                               at::Tensor* gathered = nullptr);
// reduce_scatter(x weight): x [S, .., in] -> [s, .., out].
at::Tensor scattered_product(const at::Tensor& x, const at::Tensor& weight, const TensorParallel& tp);

}  // namespace ranklab
