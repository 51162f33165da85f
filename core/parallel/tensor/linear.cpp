#include "core/parallel/tensor/linear.h"

#include <functional>

#include "core/base/error.h"
#include "core/nn/custom_function.h"
#include "core/nn/kernels/kernel_path.h"
#include "core/parallel/quantized/quantizer_book.h"
#include "core/parallel/tensor/linear_products.h"
#include "core/parallel/tensor/overlapped_products.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"

namespace ranklab {
namespace {

void keep(AutogradContext* ctx, const TensorParallel& tp) {
  ctx->saved_data["comm"] = reinterpret_cast<int64_t>(tp.comm);
  ctx->saved_data["sequence_parallel"] = tp.sequence_parallel;
  ctx->saved_data["overlaps"] = tp.overlaps;
}
TensorParallel kept_parallel(AutogradContext* ctx) {
  return {reinterpret_cast<Communicator*>(ctx->saved_data["comm"].toInt()),
          ctx->saved_data["sequence_parallel"].toBool(), ctx->saved_data["overlaps"].toBool()};
}

at::Tensor add_bias(at::Tensor y, const std::optional<at::Tensor>& bias) { return bias ? y.add_(*bias) : y; }

// Autograd functions accept no undefined inputs.
std::optional<at::Tensor> optional(const at::Tensor& bias) {
  return bias.defined() ? std::optional<at::Tensor>(bias) : std::nullopt;
}

WorkPtr gather_async(const at::Tensor& x, const TensorParallel& tp) {
  const MemoryScope memory(MemoryCategory::kGathered);
  return tp.comm->all_gather_async(x);
}
at::Tensor gather(const at::Tensor& x, const TensorParallel& tp) {
  const MemoryScope memory(MemoryCategory::kGathered);
  return tp.sharded_sequence() ? tp.comm->all_gather(x) : x;
}

// Quantized products are not cut into pieces: the scale of a whole tensor is not that of a piece.
bool overlaps(const LinearProducts& products, const TensorParallel& tp) {
  return tp.overlaps && tp.sharded_sequence() && !products.quantized();
}

// The product with the positions of all ranks.
at::Tensor gathered_forward(const LinearProducts& products, const at::Tensor& x, const at::Tensor& weight,
                            const TensorParallel& tp) {
  if (overlaps(products, tp)) return product_of_gathered(x, weight.t(), tp);
  return products.forward(gather(x, tp), weight);
}

at::Tensor reduced(const at::Tensor& y, const TensorParallel& tp) {
  if (!tp.active()) return y;
  return tp.sharded_sequence() ? tp.comm->reduce_scatter(y) : tp.comm->all_reduce(y);
}

// The product as a sum over ranks, at this rank's positions.
at::Tensor reduced_forward(const LinearProducts& products, const at::Tensor& x, const at::Tensor& weight,
                           const TensorParallel& tp) {
  if (overlaps(products, tp)) return scattered_product(x, weight.t(), tp);
  return reduced(products.forward(x, weight), tp);
}
at::Tensor reduced_input_grad(const LinearProducts& products, const at::Tensor& grad, const at::Tensor& weight,
                              const TensorParallel& tp) {
  if (overlaps(products, tp)) return scattered_product(grad, weight, tp);
  return reduced(products.input_grad(grad, weight), tp);
}

// The gradient of a row layer's output at the positions of all ranks. Overlapped, the product for the input's gradient
// is part of it, and is left in `input_grad`.
at::Tensor gathered_grad(const LinearProducts& products, const at::Tensor& grad, const at::Tensor& weight,
                         const TensorParallel& tp, at::Tensor& input_grad) {
  if (!overlaps(products, tp)) return gather(grad, tp);
  at::Tensor gathered;
  input_grad = product_of_gathered(grad, weight, tp, &gathered);
  return gathered;
}

struct ColumnFunction : CustomFunction<ColumnFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias, const NormRecipe& recipe, const TensorParallel& tp,
                            const LinearUse& use) {
    keep(ctx, tp);
    const LinearProducts products(use, x);
    products.keep(ctx);
    ctx->saved_data["norm_offset"] = recipe.weight_offset;
    ctx->save_for_backward(
        {recipe.defined() ? recipe.sum : x, weight, recipe.weight, recipe.inv_rms, bias.value_or(at::Tensor())});
    return add_bias(gathered_forward(products, x, weight, tp), bias);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &weight = saved[1], &bias = saved[4];
    const NormRecipe recipe{saved[0], saved[2], saved[3], ctx->saved_data["norm_offset"].toDouble()};
    const LinearProducts products = LinearProducts::kept(ctx);
    if (WeightGradQueue* queue = deferred_weight_grads()) {
      const TensorParallel tp = kept_parallel(ctx);
      products.defer_weight_grads(*queue, weight, bias, grads[0], [recipe, input = saved[0], tp] {
        return gather(recipe.defined() ? recipe.normed() : input, tp);
      });
      return {ctx->needs_input_grad(0) ? reduced_input_grad(products, grads[0], weight, tp) : at::Tensor(),
              {},
              {},
              {},
              {},
              {}};
    }
    const at::Tensor x_local = recipe.defined() ? recipe.normed() : saved[0];
    const TensorParallel tp = kept_parallel(ctx);
    const bool want_input = ctx->needs_input_grad(0);
    const WorkPtr gathering = tp.sharded_sequence() ? gather_async(x_local, tp) : nullptr;
    at::Tensor grad_x = want_input ? products.input_grad(grads[0], weight, /*then_weight=*/true) : at::Tensor();
    const at::Tensor x = gathering ? gathering->wait() : x_local;
    WorkPtr reduce;
    if (want_input && tp.active()) {
      reduce = tp.sharded_sequence() ? tp.comm->reduce_scatter_async(grad_x) : tp.comm->all_reduce_async(grad_x);
    }
    const at::Tensor grad_weight = products.weight_grad(grads[0], x);
    const at::Tensor grad_bias = bias_grad(bias, grads[0]);
    if (reduce) grad_x = reduce->wait();
    return {grad_x, grad_weight, grad_bias, {}, {}, {}};
  }
};

// The input of a row layer as saved for backward: the tensor itself, or what recomputes it.
struct RowInput {
  Activated activated = {};
  c10::intrusive_ptr<OutputRecomputer> recomputer = {};

  at::Tensor kept(const at::Tensor& x) const {
    if (recomputer) return {};
    return activated.compute != nullptr ? activated.input : x;
  }
  void keep(AutogradContext* ctx) const {
    ctx->saved_data["compute"] = reinterpret_cast<int64_t>(activated.compute);
    if (recomputer) ctx->saved_data["recomputer"] = c10::IValue::make_capsule(recomputer);
  }
  static std::function<at::Tensor()> restored(AutogradContext* ctx, const at::Tensor& kept) {
    if (const auto recomputer = ctx->saved_data.find("recomputer"); recomputer != ctx->saved_data.end()) {
      return [output = recomputer->second.toCapsule()] { return static_cast<OutputRecomputer&>(*output).take(); };
    }
    const auto compute = reinterpret_cast<decltype(Activated::compute)>(ctx->saved_data["compute"].toInt());
    return [compute, kept] { return compute != nullptr ? compute(kept) : kept; };
  }
};

struct RowGrads {
  at::Tensor own, all;  // gradients at this rank's positions, and at all positions that the weight was applied to
};
void defer_row_grads(const LinearProducts& products, WeightGradQueue& queue, const at::Tensor& weight,
                     const at::Tensor& bias, const RowGrads& grads, std::function<at::Tensor()> input) {
  // The bias was added only at this rank's positions, whatever positions the weight was applied to.
  if (bias.defined()) queue.push(bias, [bias, own = grads.own] { return bias_grad(bias, own); });
  products.defer_weight_grads(queue, weight, {}, grads.all, std::move(input));
}

struct RowFunction : CustomFunction<RowFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias, const RowInput& from, const TensorParallel& tp,
                            const LinearUse& use) {
    keep(ctx, tp);
    const LinearProducts products(use, x);
    products.keep(ctx);
    from.keep(ctx);
    ctx->save_for_backward({from.kept(x), weight, bias.value_or(at::Tensor())});
    return add_bias(reduced_forward(products, x, weight, tp), bias);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &weight = saved[1], &bias = saved[2];
    const auto input = RowInput::restored(ctx, saved[0]);
    const LinearProducts products = LinearProducts::kept(ctx);
    at::Tensor grad_x;
    const at::Tensor grad = gathered_grad(products, grads[0], weight, kept_parallel(ctx), grad_x);
    if (WeightGradQueue* queue = deferred_weight_grads()) {
      defer_row_grads(products, *queue, weight, bias, {grads[0], grad}, input);
      if (!grad_x.defined()) grad_x = products.input_grad(grad, weight);
      return {grad_x, {}, {}, {}, {}, {}};
    }
    const at::Tensor x = input();
    if (!grad_x.defined()) grad_x = products.input_grad(grad, weight, /*then_weight=*/true);
    return {grad_x, products.weight_grad(grad, x), bias_grad(bias, grads[0]), {}, {}, {}};
  }
};

// A row layer on swiglu(gate_up). Backward recomputes the weight's input along with the activation's gradient: on a CPU
// in one pass.
struct SwigluRowFunction : CustomFunction<SwigluRowFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& gate_up, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias, const TensorParallel& tp, const LinearUse& use) {
    keep(ctx, tp);
    const at::Tensor rows = gate_up.contiguous();
    const at::Tensor x = swiglu(rows);
    const LinearProducts products(use, x);
    products.keep(ctx);
    ctx->save_for_backward({rows, weight, bias.value_or(at::Tensor())});
    return add_bias(reduced_forward(products, x, weight, tp), bias);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &gate_up = saved[0], &weight = saved[1], &bias = saved[2];
    const LinearProducts products = LinearProducts::kept(ctx);
    WeightGradQueue* queue = deferred_weight_grads();
    at::Tensor inner;
    const at::Tensor grad = gathered_grad(products, grads[0], weight, kept_parallel(ctx), inner);
    if (!inner.defined()) inner = products.input_grad(grad, weight, /*then_weight=*/queue == nullptr);
    if (queue != nullptr) {
      defer_row_grads(products, *queue, weight, bias, {grads[0], grad}, [gate_up] { return swiglu(gate_up); });
      return {swiglu_grad(inner.contiguous(), gate_up), {}, {}, {}, {}};
    }
    const at::Tensor x = inner.contiguous();
    const at::Tensor grad_gate_up = swiglu_grad_and_recompute(x, gate_up);
    return {grad_gate_up, products.weight_grad(grad, x), bias_grad(bias, grads[0]), {}, {}};
  }
};

// Each layer class supports one split; a spec with another is a bug in the model.
void check_split(const ModuleScope& scope, const ModuleSpec& spec, ModuleSplit split) {
  RANKLAB_CHECK(spec.split == split, ErrorKind::kInternal, .where = scope.path_of(spec.name),
                .what = "the spec of a module has a different split than the layer", .got = name(spec.split),
                .want = name(split));
}

at::Tensor data_of(const Parameter* parameter) { return parameter == nullptr ? at::Tensor() : parameter->data; }

}  // namespace

at::Tensor column_parallel_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                                  const TensorParallel& tp, const LinearUse& use) {
  return ColumnFunction::apply(x, weight, optional(bias), NormRecipe{}, tp, use);
}

at::Tensor column_parallel_linear(const NormOutput& x, const at::Tensor& weight, const at::Tensor& bias,
                                  const TensorParallel& tp, const LinearUse& use) {
  return ColumnFunction::apply(x.normed, weight, optional(bias), x.recipe, tp, use);
}

at::Tensor row_parallel_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                               const TensorParallel& tp, const LinearUse& use) {
  return RowFunction::apply(x, weight, optional(bias), RowInput{}, tp, use);
}

at::Tensor row_parallel_linear(const Activated& x, const at::Tensor& weight, const at::Tensor& bias,
                               const TensorParallel& tp, const LinearUse& use) {
  return RowFunction::apply(x.out, weight, optional(bias), RowInput{.activated = x}, tp, use);
}

at::Tensor row_parallel_linear_of_swiglu(const at::Tensor& gate_up, const at::Tensor& weight, const at::Tensor& bias,
                                         const TensorParallel& tp, const LinearUse& use) {
  if (keeps_cheap_outputs() || !has_row_kernels(gate_up))
    return row_parallel_linear(activate(swiglu, gate_up), weight, bias, tp, use);
  return SwigluRowFunction::apply(gate_up, weight, optional(bias), tp, use);
}

at::Tensor row_parallel_linear(const RecomputableOutput& x, const at::Tensor& weight, const at::Tensor& bias,
                               const TensorParallel& tp, const LinearUse& use) {
  return RowFunction::apply(x.out, weight, optional(bias), RowInput{.activated = {}, .recomputer = x.recomputer}, tp,
                            use);
}

ColumnParallelLinear::ColumnParallelLinear(const ModuleScope& scope, const ModuleSpec& spec, TensorParallel tp)
    : weight_(&scope.make_weight(spec, tp.rank(), tp.size())),
      bias_(scope.make_bias(spec, tp.rank(), tp.size())),
      quantizer_(make_quantizer(scope, spec, tp)),
      tp_(tp) {
  check_split(scope, spec, ModuleSplit::kColumn);
}

at::Tensor ColumnParallelLinear::operator()(const NormOutput& x, const TokenContext& tokens) const {
  return column_parallel_linear(x, weight_->data, data_of(bias_), tp_.over(tokens), {quantizer_, tokens});
}

at::Tensor ColumnParallelLinear::bias() const { return data_of(bias_); }

std::vector<at::Tensor> ColumnParallelLinear::trained() const {
  std::vector<at::Tensor> leaves;
  for (const Parameter* parameter : {weight_, bias_})
    if (parameter != nullptr && parameter->data.requires_grad()) leaves.push_back(parameter->data);
  return leaves;
}

RowParallelLinear::RowParallelLinear(const ModuleScope& scope, const ModuleSpec& spec, TensorParallel tp)
    : weight_(&scope.make_weight(spec, tp.rank(), tp.size())),
      bias_(scope.make_bias(spec, tp.rank(), tp.size())),
      quantizer_(make_quantizer(scope, spec, tp)),
      tp_(tp) {
  check_split(scope, spec, ModuleSplit::kRow);
  if (bias_ != nullptr) bias_->sum_grad_over_tp = tp.sharded_sequence();
}

at::Tensor RowParallelLinear::operator()(const at::Tensor& x, const TokenContext& tokens) const {
  return row_parallel_linear(x, weight_->data, data_of(bias_), tp_.over(tokens), {quantizer_, tokens});
}

at::Tensor RowParallelLinear::operator()(const Activated& x, const TokenContext& tokens) const {
  return row_parallel_linear(x, weight_->data, data_of(bias_), tp_.over(tokens), {quantizer_, tokens});
}

at::Tensor RowParallelLinear::of_swiglu(const at::Tensor& gate_up, const TokenContext& tokens) const {
  return row_parallel_linear_of_swiglu(gate_up, weight_->data, data_of(bias_), tp_.over(tokens), {quantizer_, tokens});
}

at::Tensor RowParallelLinear::operator()(const RecomputableOutput& x, const TokenContext& tokens) const {
  return row_parallel_linear(x, weight_->data, data_of(bias_), tp_.over(tokens), {quantizer_, tokens});
}

}  // namespace ranklab
