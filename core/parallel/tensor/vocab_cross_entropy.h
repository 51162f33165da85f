// Cross entropy of logits whose vocabulary is sharded over tp, without gathering them: each rank contributes its
// maximum, its sum of exponentials and its part of the target's logit, three numbers per token in one all_gather
// (Megatron-LM uses three all_reduces). Padding columns are excluded from the softmax and get a zero gradient. Targets
// of -100 are ignored. Legend: N tokens, V_local columns of this rank. 16-bit logits are read as they are, once forward
// and once backward, on a device by its kernels (core/nn/kernels/device_kernels.h), and only two more numbers per token
// are saved, without an fp32 copy of the logits. Wider logits keep one [N, V_local] buffer for backward. Thread rule:
// its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/nn/parameter.h"
#include "core/parallel/tensor_parallel.h"

namespace ranklab {

constexpr int64_t kIgnoreTarget = -100;

// logits [N, V_local] -> the sum of the token losses, the same on every rank; in fp32 for 16-bit logits. `head`: the
// partition of the output head's weight, which determines this rank's columns.
at::Tensor vocab_parallel_cross_entropy(const at::Tensor& logits, const at::Tensor& targets, const Partition& head,
                                        const TensorParallel& tp);

}  // namespace ranklab
