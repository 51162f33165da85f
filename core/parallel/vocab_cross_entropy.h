// Cross entropy of logits whose vocabulary is cut over tp, without gathering them: each rank contributes its maximum,
// its sum of exponentials and its part of the target's logit, three numbers a token in one all_gather (Megatron-LM has
// three all_reduces). Padding columns are outside the softmax and get a zero gradient. Targets of -100 count nothing.
// Legend: N tokens, V_local columns of this rank. Memory: one [N, V_local] buffer for backward. A device with kernels
// for it (core/nn/device_kernels.h) reads the logits as they are, once forward and once backward, and keeps two numbers
// a token besides: none of them in fp32. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/nn/parameter.h"
#include "core/parallel/tensor_parallel.h"

namespace ranklab {

constexpr int64_t kIgnoreTarget = -100;

// logits [N, V_local] -> the sum of the token losses, the same on every rank; in fp32 for 16-bit logits. `head` is the
// partition of the head's weight: it says which columns these are.
at::Tensor vocab_parallel_cross_entropy(const at::Tensor& logits, const at::Tensor& targets, const Partition& head,
                                        const TensorParallel& tp);

}  // namespace ranklab
