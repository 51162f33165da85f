// The matrix products of a linear layer on tokens, whichever way its weight is cut: the forward, the gradient of the
// weight, and that gradient queued for a schedule that does it later. Cost: one GEMM each. Legend: x [.., in], weight
// [out, in]. Thread rule: its rank's thread; not recorded by autograd, for the inside of autograd functions.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>

#include "core/parallel/deferred_grads.h"

namespace ranklab {

// x matrix [in, out], in the shape [.., out]. With weight.t() the forward, with weight the gradient of the input.
at::Tensor project(const at::Tensor& x, const at::Tensor& matrix);
// grad^T x, [out, in].
at::Tensor weight_grad(const at::Tensor& grad, const at::Tensor& x);
// Sum over tokens; undefined when the layer has no bias.
at::Tensor bias_grad(const at::Tensor& bias, const at::Tensor& grad);
// Queues the weight gradient: its GEMM, and what is only computed or gathered again for it, by `input`.
void defer_weight_grads(WeightGradQueue& queue, const at::Tensor& weight, const at::Tensor& bias,
                        const at::Tensor& grad, std::function<at::Tensor()> input);

}  // namespace ranklab
