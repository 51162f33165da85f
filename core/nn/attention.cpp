#include "core/nn/attention.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "core/nn/kernel_path.h"
#include "core/nn/row_kernels.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

double attention_flops(const at::Tensor& qkv, const AttentionShape& shape) {
  const auto seq = static_cast<double>(qkv.size(0));
  return 2.0 * seq * seq * static_cast<double>(qkv.size(1) * shape.heads * shape.head_dim);
}

kernels::QkvShape qkv_shape(int64_t seq, int64_t batch, const AttentionShape& shape) {
  return {seq, batch, shape.heads, shape.groups, shape.head_dim};
}

// [B, groups, S, D] -> [B, heads, S, D]: each group once for each of its query heads.
at::Tensor repeat_groups(const at::Tensor& x, int64_t heads) {
  const int64_t groups = x.size(1);
  if (groups == heads) return x;
  return x.unsqueeze(2)
      .expand({x.size(0), groups, heads / groups, x.size(2), x.size(3)})
      .reshape({x.size(0), heads, x.size(2), x.size(3)});
}

at::Tensor sum_groups(const at::Tensor& x, int64_t groups) {
  if (groups == x.size(1)) return x;
  return x.reshape({x.size(0), groups, x.size(1) / groups, x.size(2), x.size(3)}).sum(2);
}

at::Tensor with_dense_rows(const at::Tensor& x) { return x.stride(-1) == 1 ? x : x.contiguous(); }

kernels::HeadStrides strides_of(const at::Tensor& x) { return {x.stride(0), x.stride(1), x.stride(2)}; }

struct AttentionFunction : torch::autograd::Function<AttentionFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& qkv_in, const AttentionShape& shape,
                            const RopeTable& rope) {
    const at::Tensor qkv = qkv_in.contiguous();
    const int64_t seq = qkv.size(0), batch = qkv.size(1);
    const CostScope cost(attention_flops(qkv, shape), 2.0 * bytes_of(qkv), dtype_of(qkv));
    at::Tensor q = at::empty({batch, shape.heads, seq, shape.head_dim}, qkv.options());
    at::Tensor k = at::empty({batch, shape.groups, seq, shape.head_dim}, qkv.options());
    at::Tensor v = at::empty_like(k);
    for_kernel_type(qkv, [&]<typename T>() {
      kernels::split_qkv(qkv_shape(seq, batch, shape), qkv.const_data_ptr<T>(),
                         rope.defined() ? rope.cos_SD.const_data_ptr<T>() : nullptr,
                         rope.defined() ? rope.sin_SD.const_data_ptr<T>() : nullptr, q.mutable_data_ptr<T>(),
                         k.mutable_data_ptr<T>(), v.mutable_data_ptr<T>());
    });
    auto [out, log_sum_exp] = at::_scaled_dot_product_flash_attention_for_cpu(q, repeat_groups(k, shape.heads),
                                                                              repeat_groups(v, shape.heads), 0.0, true);
    const at::Tensor result = out.permute({2, 0, 1, 3}).reshape({seq, batch, shape.heads * shape.head_dim});
    // `result` is kept by the next layer anyway; `out` would be a second copy.
    ctx->save_for_backward({q, k, v, result, log_sum_exp, rope.cos_SD, rope.sin_SD});
    ctx->saved_data["groups"] = shape.groups;
    return result;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &q = saved[0], &k = saved[1], &v = saved[2], &cos = saved[5], &sin = saved[6];
    const AttentionShape shape{q.size(1), ctx->saved_data["groups"].toInt(), q.size(3)};
    const int64_t batch = q.size(0), seq = q.size(2);
    at::Tensor grad_qkv = at::empty({seq, batch, (shape.heads + 2 * shape.groups) * shape.head_dim}, q.options());
    const CostScope cost(2.5 * attention_flops(grad_qkv, shape), 4.0 * bytes_of(grad_qkv), dtype_of(q));
    const auto by_head = [&](const at::Tensor& x_SBH) {
      return x_SBH.reshape({seq, batch, shape.heads, shape.head_dim}).permute({1, 2, 0, 3});
    };
    auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
        by_head(grads[0]), q, repeat_groups(k, shape.heads), repeat_groups(v, shape.heads), by_head(saved[3]), saved[4],
        0.0, true);
    dq = with_dense_rows(dq);
    dk = with_dense_rows(sum_groups(dk, shape.groups));
    dv = with_dense_rows(sum_groups(dv, shape.groups));
    for_kernel_type(q, [&]<typename T>() {
      kernels::merge_qkv(qkv_shape(seq, batch, shape), {strides_of(dq), strides_of(dk), strides_of(dv)},
                         dq.const_data_ptr<T>(), dk.const_data_ptr<T>(), dv.const_data_ptr<T>(),
                         cos.defined() ? cos.const_data_ptr<T>() : nullptr,
                         sin.defined() ? sin.const_data_ptr<T>() : nullptr, grad_qkv.mutable_data_ptr<T>());
    });
    return {grad_qkv, {}, {}};
  }
};

}  // namespace

at::Tensor causal_attention(const at::Tensor& qkv, const AttentionShape& shape, const RopeTable& rope) {
  if (!has_row_kernels(qkv)) return causal_attention_reference(qkv, shape, rope);
  return AttentionFunction::apply(qkv, shape, rope);
}

at::Tensor causal_attention_reference(const at::Tensor& qkv, const AttentionShape& shape, const RopeTable& rope) {
  const int64_t seq = qkv.size(0), batch = qkv.size(1);
  const at::Tensor heads = qkv.view({seq, batch, shape.heads + 2 * shape.groups, shape.head_dim}).permute({1, 2, 0, 3});
  const auto parts = heads.split_with_sizes({shape.heads, shape.groups, shape.groups}, 1);
  const at::Tensor q = rope.defined() ? apply_rope(parts[0], rope) : parts[0];
  const at::Tensor k = rope.defined() ? apply_rope(parts[1], rope) : parts[1];
  const at::Tensor out = at::scaled_dot_product_attention(q, repeat_groups(k, shape.heads),
                                                          repeat_groups(parts[2], shape.heads), {}, 0.0, true);
  return out.permute({2, 0, 1, 3}).reshape({seq, batch, shape.heads * shape.head_dim});
}

}  // namespace ranklab
