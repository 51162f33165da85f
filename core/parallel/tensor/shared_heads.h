// Keys and values for layouts with more tensor-parallel ranks than key/value heads: the `copies` neighbouring ranks
// whose query heads use the same key/value head each project a slice of its width and all-gather the whole head;
// backward reduce-scatters its gradient. So the weights are sharded like all others (nothing is stored twice, and
// checkpoints, ZeRO and the gradient norm need no special case), while each rank attends with a whole head. The result
// is the same as in Megatron-LM and vLLM, which copy the head's weights and sum the gradients over the copies. Cost: an
// all_gather and a reduce_scatter of 2 S B D per microbatch and layer among the copies. Legend: S positions, B
// sequences, D head dimension. Thread rule: its rank's thread; all copies in the same order.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/comm/communicator.h"

namespace ranklab {

// [S, B, queries + 2 D / copies] in the layout [q heads | slice of k | slice of v] -> [S, B, queries + 2 D].
at::Tensor gather_key_values(const at::Tensor& qkv, int64_t queries, Communicator& copies);

}  // namespace ranklab
