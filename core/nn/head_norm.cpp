#include "core/nn/head_norm.h"

#include "core/base/injected_bug.h"
#include "core/nn/custom_function.h"
#include "core/nn/kernels/head_norm_kernels.h"
#include "core/nn/kernels/kernel_path.h"
#include "core/nn/weight_gradient.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

kernels::HeadNormShape kernel_shape(const at::Tensor& qkv, const AttentionShape& shape, double epsilon, double offset) {
  return {qkv.numel() / qkv.size(-1), shape.heads, shape.groups, shape.head_dim, epsilon, offset};
}

struct HeadNormFunction : CustomFunction<HeadNormFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& qkv_in, const at::Tensor& q_weight,
                            const at::Tensor& k_weight, const AttentionShape& shape, double epsilon, double offset) {
    const CostScope cost("head_norm", 0.0, 2 * bytes_of(qkv_in), dtype_of(qkv_in));
    const at::Tensor qkv = qkv_in.contiguous();
    const kernels::HeadNormShape n = kernel_shape(qkv, shape, epsilon, offset);
    const at::Tensor out = at::empty_like(qkv);
    const at::Tensor inv_rms = at::empty({n.tokens, n.normed()}, qkv.options().dtype(kernel_wide_type(qkv)));
    if (const DeviceKernels* device = device_kernels_of(qkv)) {
      device->head_norm({device_number(qkv), n, device_in(qkv), device_in(q_weight), device_in(k_weight),
                         device_out(inv_rms), device_out(out)});
    } else {
      for_kernel_type(qkv, [&]<typename T>() {
        kernels::head_norm_forward(n, kernel_in<T>(qkv), kernel_in<T>(q_weight), kernel_in<T>(k_weight),
                                   kernel_out<T>(out), kernel_out<KernelWide<T>>(inv_rms));
      });
    }
    ctx->save_for_backward({qkv, q_weight, k_weight, inv_rms});
    ctx->saved_data["heads"] = shape.heads;
    ctx->saved_data["groups"] = shape.groups;
    ctx->saved_data["offset"] = offset;
    return out;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &qkv = saved[0], &q_weight = saved[1], &k_weight = saved[2], &inv_rms = saved[3];
    const AttentionShape shape{ctx->saved_data["heads"].toInt(), ctx->saved_data["groups"].toInt(), q_weight.size(0)};
    const kernels::HeadNormShape n = kernel_shape(qkv, shape, 0, ctx->saved_data["offset"].toDouble());
    const CostScope cost("head_norm_backward", 0.0, 3 * bytes_of(qkv), dtype_of(qkv));
    const at::Tensor grad_out = grads[0].contiguous();
    const at::Tensor grad_qkv = at::empty_like(qkv);
    const at::Tensor grad_q = empty_gradient(q_weight), grad_k = empty_gradient(k_weight);
    if (const DeviceKernels* device = device_kernels_of(qkv)) {
      const at::Tensor parts =
          at::empty({kDeviceGradParts, shape.head_dim}, qkv.options().dtype(kernel_wide_type(qkv)));
      device->head_norm_grad({device_number(qkv), n, device_in(qkv), device_in(q_weight), device_in(k_weight),
                              device_out(inv_rms), nullptr, device_in(grad_out), device_out(grad_qkv),
                              device_out(grad_q), device_out(grad_k), device_out(parts)});
      return {grad_qkv, grad_q, grad_k, {}, {}, {}};
    }
    for_kernel_type(qkv, [&]<typename T>() {
      kernels::head_norm_backward(n, kernel_in<T>(grad_out), kernel_in<T>(qkv), kernel_in<T>(q_weight),
                                  kernel_in<T>(k_weight), kernel_in<KernelWide<T>>(inv_rms), kernel_out<T>(grad_qkv),
                                  kernel_out<T>(grad_q), kernel_out<T>(grad_k));
    });
    return {grad_qkv, grad_q, grad_k, {}, {}, {}};
  }
};

}  // namespace

at::Tensor head_norm(const at::Tensor& qkv, const AttentionShape& shape, const HeadNormWeights& w) {
  if (!has_row_kernels(qkv)) return head_norm_reference(qkv, shape, w);
  return HeadNormFunction::apply(qkv, w.q, w.k, shape, w.epsilon, w.offset);
}

at::Tensor head_norm_reference(const at::Tensor& qkv, const AttentionShape& shape, const HeadNormWeights& w) {
  const CostScope cost("head_norm", 0.0, 2 * bytes_of(qkv), dtype_of(qkv));
  const at::Tensor heads = qkv.unflatten(-1, {shape.heads + 2 * shape.groups, shape.head_dim});
  const auto parts = heads.split_with_sizes({shape.heads, shape.groups, shape.groups}, -2);
  const at::Tensor q = at::rms_norm(parts[0], w.q.sizes(), w.q + w.offset, w.epsilon);
  const at::Tensor k = at::rms_norm(parts[1], w.k.sizes(), w.k + w.offset, w.epsilon);
  return at::cat({q, k, parts[2]}, -2).flatten(-2);
}

HeadNorm::HeadNorm(const ModuleScope& scope, const AttentionSpec& spec, const ModelConfig& c, bool heads_are_cut)
    : q_(&scope.make_weight(spec.q_norm.value())),
      k_(&scope.make_weight(spec.k_norm.value())),
      epsilon_(c.norm_epsilon),
      offset_(c.norm_weight_offset()) {
  q_->sum_grad_over_tp = k_->sum_grad_over_tp = heads_are_cut && !injected(InjectedBug::kOutputNormPartial);
}

HeadNorm::HeadNorm(const ModelConfig& c, const at::TensorOptions& options)
    : ones_(at::ones({c.head_dim()}, options)), epsilon_(c.norm_epsilon), offset_(0) {}

HeadNormWeights HeadNorm::weights() const {
  if (ones_.defined()) return {ones_, ones_, epsilon_, offset_};
  return {q_->data, k_->data, epsilon_, offset_};
}

at::Tensor HeadNorm::operator()(const at::Tensor& qkv, const AttentionShape& shape) const {
  return head_norm(qkv, shape, weights());
}

}  // namespace ranklab
