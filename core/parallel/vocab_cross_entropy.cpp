#include "core/parallel/vocab_cross_entropy.h"

#include <algorithm>
#include <limits>

#include "core/nn/custom_function.h"
#include "core/nn/kernel_path.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

using torch::autograd::variable_list;

struct Columns {
  int64_t begin = 0;  // global index of the first column
  int64_t real = 0;   // columns that are not padding
};

Columns columns_of(const Partition& head) {
  const auto [begin, end] = head.ranges.at(0);
  return {begin, std::clamp<int64_t>(head.global_shape.at(0) - begin, 0, end - begin)};
}

// [3, N]: maximum, sum of exp(logit - maximum), the target's logit (0 if another rank owns it). Overwrites
// `probability` (a view of the real columns) with exp(logit - maximum).
at::Tensor local_statistics(at::Tensor& probability, const at::Tensor& row_of_target, const at::Tensor& owned) {
  const int64_t tokens = probability.size(0);
  at::Tensor statistics = at::zeros({3, tokens}, probability.options());
  if (probability.size(1) == 0) {
    statistics[0].fill_(-std::numeric_limits<double>::infinity());
    return statistics;
  }
  at::Tensor maximum = statistics[0], sum = statistics[1], target = statistics[2];
  at::amax_out(maximum, probability, 1);
  target.copy_(probability.gather(1, row_of_target).squeeze(1)).masked_fill_(owned.logical_not(), 0);
  probability.sub_(maximum.unsqueeze(1)).exp_();
  at::sum_out(sum, probability, at::IntArrayRef{1});
  return statistics;
}

struct CrossEntropyFunction : CustomFunction<CrossEntropyFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& logits, const at::Tensor& targets,
                            const Columns& columns, const TensorParallel& tp) {
    const at::Tensor local = targets - columns.begin;
    const at::Tensor owned = at::logical_and(local.ge(0), local.lt(columns.real));
    const at::Tensor row_of_target = local.masked_fill(owned.logical_not(), 0).unsqueeze(1);
    at::Tensor probability = logits.narrow(1, 0, columns.real).clone();
    const at::Tensor mine = local_statistics(probability, row_of_target, owned);
    const at::Tensor all = tp.comm->all_gather(mine.unsqueeze(0));  // [tp, 3, N]
    const at::Tensor maximum = at::amax(all.select(1, 0), 0);
    const at::Tensor scale = (all.select(1, 0) - maximum).exp_();  // of each rank's sum
    const at::Tensor sum = (all.select(1, 1) * scale).sum(0);
    const at::Tensor target = all.select(1, 2).sum(0);
    const at::Tensor counted = targets.ne(kIgnoreTarget);
    const at::Tensor loss = (sum.log() - (target - maximum)).masked_fill_(counted.logical_not(), 0).sum();
    // probability * factor is softmax, and 0 for ignored tokens.
    const at::Tensor factor = (scale[tp.rank()] / sum).masked_fill_(counted.logical_not(), 0);
    ctx->save_for_backward({probability, factor, row_of_target, at::logical_and(owned, counted)});
    ctx->saved_data["width"] = logits.size(1);
    return loss;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &probability = saved[0], &factor = saved[1], &row_of_target = saved[2], &owned = saved[3];
    const int64_t width = ctx->saved_data["width"].toInt();
    const bool padded = width != probability.size(1);
    at::Tensor grad = padded ? at::zeros({probability.size(0), width}, probability.options())
                             : at::empty_like(probability, at::MemoryFormat::Contiguous);
    at::Tensor real = grad.narrow(1, 0, probability.size(1));
    at::mul_out(real, probability, (factor * grads[0]).unsqueeze(1));
    if (probability.size(1) > 0) {
      real.scatter_add_(1, row_of_target, (owned.to(grad.scalar_type()) * grads[0]).neg_().unsqueeze(1));
    }
    return {grad, {}, {}, {}};
  }
};

// With device kernels: saves the logits in their own type and two numbers per token.
struct DeviceCrossEntropyFunction : CustomFunction<DeviceCrossEntropyFunction> {
  static DeviceLoss task_of(const at::Tensor& logits, const at::Tensor& targets, const Columns& columns) {
    return {.number = device_number(logits),
            .rows = logits.size(0),
            .width = logits.size(1),
            .real = columns.real,
            .begin = columns.begin,
            .logits = device_in(logits),
            .targets = targets.const_data_ptr<int64_t>()};
  }

  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& logits_in, const at::Tensor& targets_in,
                            const Columns& columns, const TensorParallel& tp) {
    const at::Tensor logits = logits_in.contiguous(), targets = targets_in.contiguous();
    const CostScope cost("cross_entropy", 0.0, bytes_of(logits), dtype_of(logits));
    const at::Tensor mine = at::empty({3, logits.size(0)}, logits.options().dtype(kernel_wide_type(logits)));
    DeviceLoss task = task_of(logits, targets, columns);
    task.statistics = device_out(mine);
    device_kernels_of(logits)->loss_statistics(task);
    const at::Tensor all = tp.active() ? tp.comm->all_gather(mine.unsqueeze(0)) : mine.unsqueeze(0);  // [tp, 3, N]
    const at::Tensor maximum = at::amax(all.select(1, 0), 0);
    const at::Tensor sum = (all.select(1, 1) * (all.select(1, 0) - maximum).exp_()).sum(0);
    const at::Tensor target = all.select(1, 2).sum(0), ignored = targets.eq(kIgnoreTarget);
    ctx->save_for_backward({logits, targets, maximum, sum.reciprocal().masked_fill_(ignored, 0)});
    ctx->saved_data["begin"] = columns.begin;
    ctx->saved_data["real"] = columns.real;
    return (sum.log() - (target - maximum)).masked_fill_(ignored, 0).sum();
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &logits = saved[0], &targets = saved[1], &maximum = saved[2], &factor = saved[3];
    const CostScope cost("cross_entropy_backward", 0.0, 2 * bytes_of(logits), dtype_of(logits));
    const at::Tensor grad = at::empty_like(logits), grad_loss = grads[0].contiguous();
    DeviceLoss task = task_of(logits, targets, {ctx->saved_data["begin"].toInt(), ctx->saved_data["real"].toInt()});
    task.maximum = device_in(maximum);
    task.factor = device_in(factor);
    task.grad_loss = device_in(grad_loss);
    task.grad = device_out(grad);
    device_kernels_of(logits)->loss_grad(task);
    return {grad, {}, {}, {}};
  }
};

}  // namespace

at::Tensor vocab_parallel_cross_entropy(const at::Tensor& logits_in, const at::Tensor& targets, const Partition& head,
                                        const TensorParallel& tp) {
  if (has_kernel_type(logits_in) && device_kernels_of(logits_in) != nullptr)
    return DeviceCrossEntropyFunction::apply(logits_in, targets, columns_of(head), tp);
  const bool is_wide = logits_in.scalar_type() == at::kFloat || logits_in.scalar_type() == at::kDouble;
  const at::Tensor logits = is_wide ? logits_in : logits_in.to(at::kFloat);
  if (tp.active()) return CrossEntropyFunction::apply(logits, targets, columns_of(head), tp);
  return at::cross_entropy_loss(logits, targets, {}, at::Reduction::Sum, kIgnoreTarget);
}

}  // namespace ranklab
