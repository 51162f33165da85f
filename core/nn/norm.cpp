#include "core/nn/norm.h"

#include "core/base/injected_bug.h"
#include "core/nn/custom_function.h"
#include "core/nn/kernels/kernel_path.h"
#include "core/nn/kernels/row_kernels.h"
#include "core/nn/recomputable_output.h"
#include "core/nn/weight_gradient.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

kernels::RowShape rows_of(const at::Tensor& x) { return {x.numel() / x.size(-1), x.size(-1)}; }

// Scratch for the partial sums of a weight's gradient on a device.
at::Tensor grad_parts(const at::Tensor& x, int64_t cols) {
  return at::empty({kDeviceGradParts, cols}, x.options().dtype(kernel_wide_type(x)));
}

at::Tensor with_offset(const at::Tensor& weight, NormNumbers n) {
  return n.weight_offset == 0 ? weight : weight + n.weight_offset;
}

// Cost of reading and writing `passes` tensors like x. FLOPs count only matrix units, so there are none.
CostScope norm_cost(const char* kernel, const at::Tensor& x, int passes) {
  return {kernel, 0.0, passes * bytes_of(x), dtype_of(x)};
}

variable_list rms_norm_forward(AutogradContext* ctx, const at::Tensor& x_in, const at::Tensor& branch_in,
                               const at::Tensor& weight, NormNumbers numbers) {
  const bool has_branch = branch_in.defined();
  const CostScope cost = norm_cost("norm", x_in, has_branch ? 4 : 2);
  const at::Tensor x = x_in.contiguous();
  const at::Tensor branch = has_branch ? branch_in.contiguous() : branch_in;
  at::Tensor sum = has_branch ? at::empty_like(x) : x;
  at::Tensor normed = at::empty_like(x);
  at::Tensor inv_rms = at::empty({rows_of(x).rows}, x.options().dtype(kernel_wide_type(x)));
  if (const DeviceKernels* device = device_kernels_of(x)) {
    device->norm({device_number(x), rows_of(x), numbers.epsilon, numbers.weight_offset, device_in(x), device_in(branch),
                  device_in(weight), has_branch ? device_out(sum) : nullptr, device_out(normed), device_out(inv_rms)});
  } else {
    for_kernel_type(x, [&]<typename T>() {
      kernels::rms_norm_forward({rows_of(x), numbers.epsilon, numbers.weight_offset}, kernel_in<T>(x),
                                has_branch ? kernel_in<T>(branch) : nullptr, kernel_in<T>(weight),
                                has_branch ? kernel_out<T>(sum) : nullptr, kernel_out<T>(normed),
                                kernel_out<KernelWide<T>>(inv_rms));
    });
  }
  ctx->save_for_backward({sum, weight, inv_rms});
  ctx->saved_data["offset"] = numbers.weight_offset;
  ctx->set_materialize_grads(false);
  ctx->mark_non_differentiable({inv_rms});
  return {normed, inv_rms, has_branch ? sum : x_in};
}

// Returns {grad of the sum, grad of weight}. grad_sum may be undefined.
std::pair<at::Tensor, at::Tensor> rms_norm_backward(AutogradContext* ctx, const at::Tensor& grad_sum_in,
                                                    const at::Tensor& grad_normed_in) {
  const auto saved = ctx->get_saved_variables();
  const at::Tensor &sum = saved[0], &weight = saved[1], &inv_rms = saved[2];
  if (!grad_normed_in.defined()) return {grad_sum_in, {}};
  const double offset = ctx->saved_data["offset"].toDouble();
  const CostScope cost = norm_cost("norm_backward", sum, grad_sum_in.defined() ? 4 : 3);
  const at::Tensor grad_normed = grad_normed_in.contiguous();
  const at::Tensor grad_sum = grad_sum_in.defined() ? grad_sum_in.contiguous() : grad_sum_in;
  at::Tensor grad_in = at::empty_like(sum);
  at::Tensor grad_weight = empty_gradient(weight);
  if (const DeviceKernels* device = device_kernels_of(sum)) {
    const at::Tensor parts = grad_parts(sum, weight.numel());
    device->norm_grad({device_number(sum), rows_of(sum), offset, device_in(grad_normed), device_in(grad_sum),
                       device_in(sum), device_in(weight), device_in(inv_rms), device_out(grad_in),
                       device_out(grad_weight), device_out(parts)});
    return {grad_in, grad_weight};
  }
  for_kernel_type(sum, [&]<typename T>() {
    kernels::rms_norm_backward({rows_of(sum), 0, offset}, kernel_in<T>(grad_normed),
                               grad_sum.defined() ? kernel_in<T>(grad_sum) : nullptr, kernel_in<T>(sum),
                               kernel_in<T>(weight), kernel_in<KernelWide<T>>(inv_rms), kernel_out<T>(grad_in),
                               kernel_out<T>(grad_weight));
  });
  return {grad_in, grad_weight};
}

struct RmsNormFunction : CustomFunction<RmsNormFunction> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight, NormNumbers n) {
    return rms_norm_forward(ctx, x, {}, weight, n);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto [grad_x, grad_weight] = rms_norm_backward(ctx, grads[2], grads[0]);
    return {grad_x, grad_weight, {}};
  }
};

struct AddRmsNormFunction : CustomFunction<AddRmsNormFunction> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& branch,
                               const at::Tensor& weight, NormNumbers n) {
    return rms_norm_forward(ctx, x, branch, weight, n);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto [grad, grad_weight] = rms_norm_backward(ctx, grads[2], grads[0]);
    return {grad, grad, grad_weight, {}};
  }
};

}  // namespace

NormOutput add_rms_norm(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& weight, NormNumbers numbers) {
  if (!has_row_kernels(x)) return add_rms_norm_reference(x, branch, weight, numbers);
  const variable_list outputs = branch.defined() ? AddRmsNormFunction::apply(x, branch, weight, numbers)
                                                 : RmsNormFunction::apply(x, weight, numbers);
  // The sum is an output of the function even where nothing is added: its gradient and the norm's are then always added
  // before rounding, so results do not depend on where pipeline stages begin.
  const at::Tensor& sum = outputs[2];
  if (keeps_cheap_outputs()) return {sum, outputs[0], {}};
  return {sum, outputs[0], {sum.detach(), weight.detach(), outputs[1], numbers.weight_offset}};
}

at::Tensor NormRecipe::normed() const {
  const CostScope cost = norm_cost("norm", sum, 2);
  at::Tensor out = at::empty_like(sum, at::MemoryFormat::Contiguous);
  const at::Tensor dense = sum.contiguous();
  if (const DeviceKernels* device = device_kernels_of(sum)) {
    device->norm_recompute({.number = device_number(sum),
                            .shape = rows_of(sum),
                            .weight_offset = weight_offset,
                            .x = device_in(dense),
                            .weight = device_in(weight),
                            .out = device_out(out),
                            .inv_rms = device_out(inv_rms)});
    return out;
  }
  for_kernel_type(sum, [&]<typename T>() {
    kernels::rms_norm_recompute({rows_of(sum), 0, weight_offset}, kernel_in<T>(dense), kernel_in<T>(weight),
                                kernel_in<KernelWide<T>>(inv_rms), kernel_out<T>(out));
  });
  return out;
}

NormOutput add_rms_norm_reference(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& weight,
                                  NormNumbers n) {
  const CostScope cost = norm_cost("norm", x, branch.defined() ? 4 : 2);
  const at::Tensor sum = branch.defined() ? at::add(x, branch) : x;
  return {sum, at::rms_norm(sum, weight.sizes(), with_offset(weight, n), n.epsilon), {}};
}

NormOutput add_layer_norm(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& weight,
                          const at::Tensor& bias, NormNumbers n) {
  const CostScope cost = norm_cost("norm", x, branch.defined() ? 4 : 2);
  const at::Tensor sum = branch.defined() ? at::add(x, branch) : x;
  return {sum, at::layer_norm(sum, weight.sizes(), with_offset(weight, n), bias, n.epsilon), {}};
}

Norm::Norm(const ModuleScope& scope, const ModuleSpec& spec, const ModelConfig& config, bool sequence_parallel)
    : kind_(config.norm),
      weight_(&scope.make_weight(spec)),
      bias_(scope.make_bias(spec)),
      numbers_{config.norm_epsilon, config.norm_weight_offset()} {
  weight_->sum_grad_over_tp = sequence_parallel;
  if (injected(InjectedBug::kNormUnreduced) && spec.part == ModulePart::kFinalNorm) weight_->sum_grad_over_tp = false;
  if (bias_ != nullptr) bias_->sum_grad_over_tp = sequence_parallel;
}

NormOutput Norm::operator()(const at::Tensor& x, const at::Tensor& branch) const {
  if (kind_ == NormKind::kRmsNorm) return add_rms_norm(x, branch, weight_->data, numbers_);
  return add_layer_norm(x, branch, weight_->data, bias_ == nullptr ? at::Tensor() : bias_->data, numbers_);
}

}  // namespace ranklab
