#include "core/parallel/tensor/replicated_linear.h"

#include "core/nn/custom_function.h"
#include "core/parallel/quantized/quantizer_book.h"
#include "core/parallel/tensor/linear_products.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

struct ReplicatedFunction : CustomFunction<ReplicatedFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias, const NormRecipe& recipe, const LinearUse& use) {
    const LinearProducts products(use, x);
    products.keep(ctx);
    ctx->saved_data["norm_offset"] = recipe.weight_offset;
    ctx->save_for_backward(
        {recipe.defined() ? recipe.sum : x, weight, recipe.weight, recipe.inv_rms, bias.value_or(at::Tensor())});
    at::Tensor y = products.forward(x, weight);
    return bias ? y.add_(*bias) : y;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &weight = saved[1], &bias = saved[4];
    const NormRecipe recipe{saved[0], saved[2], saved[3], ctx->saved_data["norm_offset"].toDouble()};
    const auto input = [recipe, x = saved[0]] { return recipe.defined() ? recipe.normed() : x; };
    const LinearProducts products = LinearProducts::kept(ctx);
    const at::Tensor grad = grads[0].contiguous();
    WeightGradQueue* queue = deferred_weight_grads();
    const at::Tensor grad_x =
        ctx->needs_input_grad(0) ? products.input_grad(grad, weight, /*then_weight=*/queue == nullptr) : at::Tensor();
    if (queue != nullptr) {
      products.defer_weight_grads(*queue, weight, bias, grad, input);
      return {grad_x, {}, {}, {}, {}};
    }
    return {grad_x, products.weight_grad(grad, input()), bias_grad(bias, grad), {}, {}};
  }
};

}  // namespace

ReplicatedLinear::ReplicatedLinear(const ModuleScope& scope, const ModuleSpec& spec, const TensorParallel& tp)
    : weight_(&scope.make_weight(spec)), bias_(scope.make_bias(spec)), quantizer_(make_quantizer(scope, spec, tp)) {
  weight_->sum_grad_over_tp = tp.sharded_sequence();
  if (bias_ != nullptr) bias_->sum_grad_over_tp = tp.sharded_sequence();
}

at::Tensor ReplicatedLinear::multiply(const at::Tensor& x, const NormRecipe& recipe, const TokenContext& tokens) const {
  const auto bias = bias_ != nullptr ? std::optional<at::Tensor>(bias_->data) : std::nullopt;
  return ReplicatedFunction::apply(x, weight_->data, bias, recipe, LinearUse{quantizer_, tokens});
}

at::Tensor ReplicatedLinear::operator()(const at::Tensor& x, const TokenContext& tokens) const {
  return multiply(x, {}, tokens);
}

at::Tensor ReplicatedLinear::operator()(const NormOutput& x, const TokenContext& tokens) const {
  return multiply(x.normed, x.recipe, tokens);
}

}  // namespace ranklab
