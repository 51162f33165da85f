// Keys and values where tensor-parallel ranks are more than key/value heads: the `copies` neighbours whose query heads
// read the same head each project a part of its width, and gather the whole from each other; backward sums their
// gradients and hands each its part. So the weights are cut like all others (nothing is stored twice, and checkpoints,
// ZeRO and the gradient norm see no difference), while each rank attends with a whole head, as where Megatron-LM and
// vLLM copy the head's weights and sum the gradients over the copies. Cost: an all_gather and a reduce_scatter of 2 S B
// D a microbatch and layer among the copies. Legend: S positions, B sequences, D head dimension. Thread rule: its
// rank's thread; all copies in the same order.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/comm/communicator.h"

namespace ranklab {

// [S, B, queries + 2 D / copies], laid out [q heads | part of k | part of v] -> [S, B, queries + 2 D].
at::Tensor gather_key_values(const at::Tensor& qkv, int64_t queries, Communicator& copies);

}  // namespace ranklab
