#include "core/parallel/tensor/linear_products.h"

#include <utility>

#include "core/nn/custom_function.h"
#include "core/nn/gemm.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "core/sim/type_watch.h"

namespace ranklab {
namespace {

at::Tensor flat(const at::Tensor& x) { return x.reshape({-1, x.size(-1)}); }

// What backward needs to know of a product's rows.
struct KeptRows : torch::CustomClassHolder {
  explicit KeptRows(TokenRows of_forward) : rows(std::move(of_forward)) {}
  TokenRows rows;
};

// A CPU's BLAS is faster with the smaller side first: 1.4 times at 44 x 128 over 4096 tokens (MKL). On a GPU it is not,
// and the transposition would be one more pass over the gradient.
at::Tensor plain_weight_grad(const at::Tensor& grad, const at::Tensor& x) {
  if (!x.is_cuda() && x.size(-1) < grad.size(-1)) return gemm(x.t(), grad).t().contiguous();
  return gemm(grad.t(), x);
}

// Reshapes a matrix to the leading sizes of x: [.., columns].
at::Tensor rows_like(const at::Tensor& x, const at::Tensor& matrix) {
  auto sizes = x.sizes().vec();
  sizes.back() = matrix.size(1);
  return matrix.view(sizes);
}

}  // namespace

at::Tensor LinearProducts::forward(const at::Tensor& x, const at::Tensor& weight) const {
  at::Tensor y =
      rows_like(x, quantizer_ == nullptr ? gemm(flat(x), weight.t()) : quantizer_->forward(flat(x), weight, rows_));
  if (TypeWatch* watch = type_watch_of_thread) watch->is_product(y, x, weight);
  return y;
}

at::Tensor LinearProducts::input_grad(const at::Tensor& grad, const at::Tensor& weight) const {
  at::Tensor grad_x = rows_like(
      grad, quantizer_ == nullptr ? gemm(flat(grad), weight) : quantizer_->input_grad(flat(grad), weight, rows_));
  if (TypeWatch* watch = type_watch_of_thread) watch->is_product(grad_x, grad, weight);
  return grad_x;
}

at::Tensor LinearProducts::weight_grad(const at::Tensor& grad, const at::Tensor& x) const {
  const MemoryScope memory(MemoryCategory::kGradients);
  at::Tensor grad_weight = quantizer_ == nullptr ? plain_weight_grad(flat(grad), flat(x))
                                                 : quantizer_->weight_grad(flat(grad), flat(x), rows_);
  if (TypeWatch* watch = type_watch_of_thread) watch->is_made_of(grad_weight, grad);
  return grad_weight;
}

void LinearProducts::defer_weight_grads(WeightGradQueue& queue, const at::Tensor& weight, const at::Tensor& bias,
                                        const at::Tensor& grad, std::function<at::Tensor()> input) const {
  queue.push(weight,
             [products = *this, grad, input = std::move(input)] { return products.weight_grad(grad, input()); });
  if (bias.defined()) queue.push(bias, [bias, grad] { return bias_grad(bias, grad); });
}

void LinearProducts::keep(AutogradContext* ctx) const {
  ctx->saved_data["quantizer"] = reinterpret_cast<int64_t>(quantizer_);
  if (quantizer_ == nullptr) return;
  ctx->saved_data["rows"] = c10::IValue::make_capsule(c10::make_intrusive<KeptRows>(rows_));
}

LinearProducts LinearProducts::kept(AutogradContext* ctx) {
  LinearProducts products;
  products.quantizer_ = reinterpret_cast<LinearQuantizer*>(ctx->saved_data["quantizer"].toInt());
  if (products.quantizer_ == nullptr) return products;
  products.rows_ = static_cast<const KeptRows&>(*ctx->saved_data["rows"].toCapsule()).rows;
  return products;
}

at::Tensor bias_grad(const at::Tensor& bias, const at::Tensor& grad) {
  const MemoryScope memory(MemoryCategory::kGradients);
  return bias.defined() ? flat(grad).sum(0) : at::Tensor();
}

}  // namespace ranklab
