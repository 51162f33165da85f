#include "core/parallel/replicated_linear.h"

#include "core/nn/custom_function.h"
#include "core/parallel/linear_products.h"
#include "core/parallel/quantizer_book.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

using torch::autograd::variable_list;

struct ReplicatedFunction : CustomFunction<ReplicatedFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const NormRecipe& recipe, const LinearUse& use) {
    const LinearProducts products(use, x);
    products.keep(ctx);
    ctx->saved_data["norm_offset"] = recipe.weight_offset;
    ctx->save_for_backward({recipe.defined() ? recipe.sum : x, weight, recipe.weight, recipe.inv_rms});
    return products.forward(x, weight);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor& weight = saved[1];
    const NormRecipe recipe{saved[0], saved[2], saved[3], ctx->saved_data["norm_offset"].toDouble()};
    const auto input = [recipe, x = saved[0]] { return recipe.defined() ? recipe.normed() : x; };
    const LinearProducts products = LinearProducts::kept(ctx);
    const at::Tensor grad = grads[0].contiguous();
    const at::Tensor grad_x = ctx->needs_input_grad(0) ? products.input_grad(grad, weight) : at::Tensor();
    if (WeightGradQueue* queue = deferred_weight_grads()) {
      products.defer_weight_grads(*queue, weight, {}, grad, input);
      return {grad_x, {}, {}, {}};
    }
    return {grad_x, products.weight_grad(grad, input()), {}, {}};
  }
};

}  // namespace

ReplicatedLinear::ReplicatedLinear(ParameterRegistry& registry, const std::string& name, LinearSize size, Init init,
                                   const TensorParallel& tp) {
  weight_ = &registry.create(name + ".weight", replicated({size.out, size.in}), init, true);
  weight_->sum_grad_over_tp = tp.sharded_sequence();
  quantizer_ = make_quantizer(registry, name, {size.in, size.out, {}, LinearSplit::kReplicated, tp});
}

at::Tensor ReplicatedLinear::operator()(const at::Tensor& x, const TokenPlace& tokens) const {
  return ReplicatedFunction::apply(x, weight_->data, NormRecipe{}, LinearUse{quantizer_, tokens});
}

at::Tensor ReplicatedLinear::operator()(const NormOutput& x, const TokenPlace& tokens) const {
  return ReplicatedFunction::apply(x.normed, weight_->data, x.recipe, LinearUse{quantizer_, tokens});
}

}  // namespace ranklab
