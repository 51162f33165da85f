// The matrix products of a linear layer on tokens, whichever way its weight is cut: the forward, the gradient of the
// weight, and that gradient queued for a schedule that does it later. Cost: one GEMM each. Legend: x [.., in], weight
// [out, in]. Thread rule: its rank's thread; not recorded by autograd, for the inside of autograd functions.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>

#include "core/parallel/deferred_grads.h"
#include "core/parallel/linear.h"
#include "core/parallel/linear_quantizer.h"

namespace ranklab {

class AutogradContext;

// The products of a layer: in the type of their operands, or as its quantizer says.
class LinearProducts {
 public:
  // x: the layer's input, whose shape says which tokens its rows are. The use's quantizer outlives the products.
  LinearProducts(const LinearUse& use, const at::Tensor& x)
      : quantizer_(use.quantizer), rows_{use.tokens, x.dim() > 2 ? x.size(1) : 0} {}

  at::Tensor forward(const at::Tensor& x, const at::Tensor& weight) const;        // x W^T
  at::Tensor input_grad(const at::Tensor& grad, const at::Tensor& weight) const;  // dy W
  at::Tensor weight_grad(const at::Tensor& grad, const at::Tensor& x) const;      // dy^T x, [out, in]
  // Queues the weight gradient: its GEMM, and what is only computed or gathered again for it, by `input`.
  void defer_weight_grads(WeightGradQueue& queue, const at::Tensor& weight, const at::Tensor& bias,
                          const at::Tensor& grad, std::function<at::Tensor()> input) const;

  // From forward to backward.
  void keep(AutogradContext* ctx) const;
  static LinearProducts kept(AutogradContext* ctx);

 private:
  LinearProducts() = default;
  LinearQuantizer* quantizer_ = nullptr;
  TokenRows rows_ = {};
};

// Sum over tokens; undefined when the layer has no bias.
at::Tensor bias_grad(const at::Tensor& bias, const at::Tensor& grad);

}  // namespace ranklab
