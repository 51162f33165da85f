#include "core/parallel/tensor/vocab_cross_entropy.h"

#include <algorithm>
#include <limits>
#include <optional>

#include <torch/csrc/autograd/autograd.h>

#include "core/base/injected_bug.h"
#include "core/nn/custom_function.h"
#include "core/nn/kernels/kernel_path.h"
#include "core/sim/aten.h"
#include "core/sim/charge_on_shapes.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

struct Columns {
  int64_t begin = 0;  // global index of the first column
  int64_t real = 0;   // columns that are not padding
};

Columns columns_of(const Partition& head) {
  const auto [begin, end] = head.ranges.at(0);
  if (injected(InjectedBug::kVocabPadding)) return {begin, end - begin};
  return {begin, std::clamp<int64_t>(head.global_shape.at(0) - begin, 0, end - begin)};
}

// Which targets are in a rank's columns, and in which column.
struct OwnTargets {
  at::Tensor column_N1;  // 0 where another rank owns the target
  at::Tensor owned_N;
};
OwnTargets own_targets(const at::Tensor& targets, const Columns& columns) {
  const at::Tensor local = targets - columns.begin;
  const at::Tensor owned = at::bitwise_and(local.ge(0), local.lt(columns.real));
  return {local.masked_fill(owned.bitwise_not(), 0).unsqueeze(1), owned};
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
  target.copy_(probability.gather(1, row_of_target).squeeze(1)).masked_fill_(owned.bitwise_not(), 0);
  probability.sub_(maximum.unsqueeze(1)).exp_();
  at::sum_out(sum, probability, at::IntArrayRef{1});
  return statistics;
}

// What a rank computes from its columns: exp(logit - maximum), and the three statistics per token that ranks exchange.
struct OwnColumns {
  at::Tensor probability, statistics;
  OwnTargets targets;
};
OwnColumns own_columns(const at::Tensor& logits, const at::Tensor& targets, const Columns& columns) {
  OwnColumns own{{}, {}, own_targets(targets, columns)};
  own.probability = logits.narrow(1, 0, columns.real).clone();
  own.statistics = local_statistics(own.probability, own.targets.column_N1, own.targets.owned_N);
  return own;
}

struct JoinedLoss {
  at::Tensor loss;
  at::Tensor factor;   // times `probability` it gives the softmax, or 0 for ignored tokens
  at::Tensor counted;  // tokens whose target this rank owns and that are not ignored
};
// all [tp, 3, N]: the statistics of all ranks.
JoinedLoss joined_loss(const at::Tensor& all, const at::Tensor& targets, const at::Tensor& owned, int64_t tp_rank) {
  const at::Tensor maximum = at::amax(all.select(1, 0), 0);
  const at::Tensor scale = (all.select(1, 0) - maximum).exp_();  // of each rank's sum
  const at::Tensor sum = (all.select(1, 1) * scale).sum(0);
  const at::Tensor target = all.select(1, 2).sum(0);
  const at::Tensor counted = targets.ne(kIgnoreTarget);
  const at::Tensor loss = (sum.log() - (target - maximum)).masked_fill_(counted.bitwise_not(), 0).sum();
  return {loss, (scale[tp_rank] / sum).masked_fill_(counted.bitwise_not(), 0), at::bitwise_and(owned, counted)};
}

at::Tensor logits_grad(const at::Tensor& probability, const at::Tensor& factor, const at::Tensor& column_N1,
                       const at::Tensor& counted, const at::Tensor& grad_loss, int64_t width) {
  const bool padded = width != probability.size(1);
  at::Tensor grad = padded ? at::zeros({probability.size(0), width}, probability.options())
                           : at::empty_like(probability, at::MemoryFormat::Contiguous);
  at::Tensor real = grad.narrow(1, 0, probability.size(1));
  at::mul_out(real, probability, (factor * grad_loss).unsqueeze(1));
  if (probability.size(1) > 0)
    real.scatter_add_(1, column_N1, (counted.to(grad.scalar_type()) * grad_loss).neg_().unsqueeze(1));
  return grad;
}

struct CrossEntropyFunction : CustomFunction<CrossEntropyFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& logits, const at::Tensor& targets,
                            const Columns& columns, const TensorParallel& tp) {
    const OwnColumns own = own_columns(logits, targets, columns);
    const at::Tensor all = tp.comm->all_gather(own.statistics.unsqueeze(0));  // [tp, 3, N]
    const JoinedLoss joined = joined_loss(all, targets, own.targets.owned_N, tp.rank());
    ctx->save_for_backward({own.probability, joined.factor, own.targets.column_N1, joined.counted});
    ctx->saved_data["width"] = logits.size(1);
    return joined.loss;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    return {
        logits_grad(saved[0], saved[1], saved[2], saved[3], grads[0], ctx->saved_data["width"].toInt()), {}, {}, {}};
  }
};

at::Tensor whole_cross_entropy(const at::Tensor& logits, const at::Tensor& targets) {
  return at::cross_entropy_loss(logits, targets, {}, at::Reduction::Sum, kIgnoreTarget);
}

// The cost of the loss of fp32 and fp64 logits on a CPU, for devices that compute it with two kernels.
class WideCharge : public torch::CustomClassHolder {
 public:
  WideCharge(const at::Tensor& logits, const at::Tensor& targets, const Columns& columns, const TensorParallel& tp)
      : width_(logits.size(1)), tp_(tp) {
    charge_on_shapes([&] {
      targets_ = shape_of(targets);
      if (tp.active()) {
        own_ = own_columns(shape_of(logits), targets_, columns);
        return;
      }
      const at::AutoGradMode recorded(true);
      logits_ = shape_of(logits).requires_grad_(true);
      loss_ = whole_cross_entropy(logits_, targets_);
    });
  }
  void charge_exchanged(const at::Tensor& all) {
    if (!own_.probability.defined()) return;
    charge_on_shapes([&] { joined_ = joined_loss(shape_of(all), targets_, own_.targets.owned_N, tp_.rank()); });
  }
  void charge_backward(const at::Tensor& grad_loss) {
    charge_on_shapes([&] {
      const at::Tensor grad = shape_of(grad_loss);
      if (loss_.defined()) torch::autograd::grad({loss_}, {logits_}, {grad});
      if (joined_.loss.defined())
        logits_grad(own_.probability, joined_.factor, own_.targets.column_N1, joined_.counted, grad, width_);
    });
  }

 private:
  int64_t width_;
  TensorParallel tp_;
  at::Tensor targets_, logits_, loss_;
  OwnColumns own_;
  JoinedLoss joined_;
};

// Calls f(first row, the rows' logits in fp32) for a few rows at a time, which stay in the processor's cache.
template <typename F>
void for_wide_rows(const at::Tensor& logits, int64_t real, F&& f) {
  constexpr int64_t kElements = int64_t{1} << 16;
  if (real == 0) return;
  const int64_t rows = std::clamp<int64_t>(kElements / real, 1, std::max<int64_t>(logits.size(0), 1));
  const at::Tensor scratch = at::empty({rows, real}, logits.options().dtype(at::kFloat));
  if (logits.is_meta()) return;
  for (int64_t row = 0; row < logits.size(0); row += rows) {
    const int64_t count = std::min(rows, logits.size(0) - row);
    at::Tensor wide = scratch.narrow(0, 0, count);
    wide.copy_(logits.narrow(0, row, count).narrow(1, 0, real));
    f(row, wide);
  }
}

// Like the devices' kernels: logits are read as they are, forward and backward, and only two numbers per token are
// saved besides them. The virtual clock is charged one kernel each way for 16-bit logits on any device, and for wider
// ones what a CPU does with them.
struct NarrowCrossEntropyFunction : CustomFunction<NarrowCrossEntropyFunction> {
  static WideCharge* charge_of(AutogradContext* ctx) {
    const auto found = ctx->saved_data.find("charge");
    return found == ctx->saved_data.end() ? nullptr : static_cast<WideCharge*>(found->second.toCapsule().get());
  }

  static DeviceLoss task_of(const at::Tensor& logits, const at::Tensor& targets, const Columns& columns) {
    return {.number = device_number(logits),
            .rows = logits.size(0),
            .width = logits.size(1),
            .real = columns.real,
            .begin = columns.begin,
            .logits = device_in(logits),
            .targets = targets.const_data_ptr<int64_t>()};
  }

  // [3, N]: maximum, sum of exp(logit - maximum), the target's logit (0 if another rank owns it).
  static at::Tensor statistics(const at::Tensor& logits, const at::Tensor& targets, const Columns& columns) {
    const at::Tensor all = at::empty({3, logits.size(0)}, logits.options().dtype(kernel_wide_type(logits)));
    if (const DeviceKernels* kernels = device_kernels_of(logits)) {
      DeviceLoss task = task_of(logits, targets, columns);
      task.statistics = device_out(all);
      kernels->loss_statistics(task);
      return all;
    }
    all.zero_();
    if (columns.real == 0) all[0].fill_(-std::numeric_limits<double>::infinity());
    const OwnTargets own = own_targets(targets, columns);
    for_wide_rows(logits, columns.real, [&](int64_t row, at::Tensor& wide) {
      all.narrow(1, row, wide.size(0))
          .copy_(local_statistics(wide, own.column_N1.narrow(0, row, wide.size(0)),
                                  own.owned_N.narrow(0, row, wide.size(0))));
    });
    return all;
  }

  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& logits_in, const at::Tensor& targets_in,
                            const Columns& columns, const TensorParallel& tp) {
    const at::Tensor logits = logits_in.contiguous(), targets = targets_in.contiguous();
    std::optional<CostScope> one_kernel;
    if (logits.itemsize() == 2) {
      one_kernel.emplace(KernelName("cross_entropy", KernelShape::loss()), 0.0, bytes_of(logits), dtype_of(logits));
    } else {
      ctx->saved_data["charge"] =
          c10::IValue::make_capsule(c10::make_intrusive<WideCharge>(logits, targets, columns, tp));
    }
    at::Tensor mine;
    {
      const NoCostScope charged;
      mine = statistics(logits, targets, columns);
    }
    const at::Tensor all = tp.active() ? tp.comm->all_gather(mine.unsqueeze(0)) : mine.unsqueeze(0);  // [tp, 3, N]
    if (WideCharge* charge = charge_of(ctx)) charge->charge_exchanged(all);
    const NoCostScope charged;
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
    const Columns columns{ctx->saved_data["begin"].toInt(), ctx->saved_data["real"].toInt()};
    std::optional<CostScope> one_kernel;
    if (WideCharge* charge = charge_of(ctx)) {
      charge->charge_backward(grads[0]);
    } else {
      one_kernel.emplace(KernelName("cross_entropy_backward", KernelShape::loss()), 0.0, 2 * bytes_of(logits),
                         dtype_of(logits));
    }
    const NoCostScope charged;
    const at::Tensor grad = at::empty_like(logits), grad_loss = grads[0].contiguous();
    if (const DeviceKernels* kernels = device_kernels_of(logits)) {
      DeviceLoss task = task_of(logits, targets, columns);
      task.maximum = device_in(maximum);
      task.factor = device_in(factor);
      task.grad_loss = device_in(grad_loss);
      task.grad = device_out(grad);
      kernels->loss_grad(task);
      return {grad, {}, {}, {}};
    }
    grad.narrow(1, columns.real, logits.size(1) - columns.real).zero_();
    const OwnTargets own = own_targets(targets, columns);
    const at::Tensor scale_N1 = (factor * grad_loss).unsqueeze(1);
    const at::Tensor subtracted_N1 = at::logical_and(own.owned_N, targets.ne(kIgnoreTarget))
                                         .to(factor.scalar_type())
                                         .mul_(grad_loss)
                                         .neg_()
                                         .unsqueeze(1);
    for_wide_rows(logits, columns.real, [&](int64_t row, at::Tensor& wide) {
      const int64_t rows = wide.size(0);
      wide.sub_(maximum.narrow(0, row, rows).unsqueeze(1)).exp_().mul_(scale_N1.narrow(0, row, rows));
      wide.scatter_add_(1, own.column_N1.narrow(0, row, rows), subtracted_N1.narrow(0, row, rows));
      grad.narrow(0, row, rows).narrow(1, 0, columns.real).copy_(wide);
    });
    return {grad, {}, {}, {}};
  }
};

}  // namespace

at::Tensor vocab_parallel_cross_entropy(const at::Tensor& logits, const at::Tensor& targets, const Partition& head,
                                        const TensorParallel& tp) {
  const bool narrow = has_kernel_type(logits) && logits.itemsize() == 2;
  if (narrow || (has_kernel_type(logits) && device_kernels_of(logits) != nullptr))
    return NarrowCrossEntropyFunction::apply(logits, targets, columns_of(head), tp);
  if (tp.active()) return CrossEntropyFunction::apply(logits, targets, columns_of(head), tp);
  return whole_cross_entropy(logits, targets);
}

}  // namespace ranklab
