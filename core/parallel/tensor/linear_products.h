// The matrix products of a linear layer, however its weight is sharded: forward, the gradients of input and weight, and
// the deferred weight gradient. Cost: one GEMM each. Legend: x [.., in], weight [out, in]. Thread rule: its rank's
// thread; not recorded by autograd, for use inside autograd functions.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <utility>

#include "core/parallel/deferred_grads.h"
#include "core/parallel/quantized/linear_quantizer.h"
#include "core/parallel/tensor/linear.h"

namespace ranklab {

class AutogradContext;

// A layer's products, either in the type of their operands or as its quantizer says.
class LinearProducts {
 public:
  // x: the layer's input, whose shape determines which tokens its rows are. The use's quantizer must outlive the
  // products.
  LinearProducts(const LinearUse& use, const at::Tensor& x);

  at::Tensor forward(const at::Tensor& x, const at::Tensor& weight) const;  // x W^T
  // dy W. `then_weight`: weight_grad() for the same gradient follows immediately.
  at::Tensor input_grad(const at::Tensor& grad, const at::Tensor& weight, bool then_weight = false) const;
  at::Tensor weight_grad(const at::Tensor& grad, const at::Tensor& x) const;  // dy^T x, [out, in]
  // Queues the weight gradient: its GEMM, together with `input`, which recomputes or gathers the layer's input for it.
  void defer_weight_grads(WeightGradQueue& queue, const at::Tensor& weight, const at::Tensor& bias,
                          const at::Tensor& grad, std::function<at::Tensor()> input) const;

  bool quantized() const { return quantized_ != nullptr; }

  // These carry the products from forward to backward.
  void keep(AutogradContext* ctx) const;
  static LinearProducts kept(AutogradContext* ctx);

 private:
  // Shared by the products of forward and backward, so that backward can reuse what forward rounded.
  struct Quantized : torch::CustomClassHolder {
    Quantized(LinearQuantizer& of_layer, TokenRows of_forward) : quantizer(of_layer), rows(std::move(of_forward)) {}
    LinearQuantizer& quantizer;
    TokenRows rows;
    KeptRounding kept;
  };
  explicit LinearProducts(c10::intrusive_ptr<Quantized> quantized);
  c10::intrusive_ptr<Quantized> quantized_;  // null: products in the type of x
};

// The sum over tokens; undefined if the layer has no bias.
at::Tensor bias_grad(const at::Tensor& bias, const at::Tensor& grad);

}  // namespace ranklab
