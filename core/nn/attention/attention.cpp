#include "core/nn/attention/attention.h"

#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/nn/attention/attention_sinks.h"
#include "core/nn/attention/max_logit.h"
#include "core/nn/attention/softmax_recomputer.h"
#include "core/nn/attention/unfused_attention.h"
#include "core/nn/custom_function.h"
#include "core/nn/kernels/kernel_path.h"
#include "core/nn/kernels/row_kernels.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"
#include "core/sim/type_watch.h"
#include "core/spec/attention_span.h"

namespace ranklab {
namespace {

double attention_flops(const at::Tensor& qkv, const AttentionShape& shape) {
  const auto seq = static_cast<double>(qkv.size(0));
  return 2.0 * attention_span(qkv.size(0), shape.window) * seq *
         static_cast<double>(qkv.size(1) * shape.heads * shape.head_dim);
}

KernelShape kernel_shape(const at::Tensor& qkv, const AttentionShape& shape) {
  return KernelShape::attention(static_cast<double>(qkv.size(0) * qkv.size(1) * shape.heads),
                                attention_span(qkv.size(0), shape.window) / 2, static_cast<double>(shape.head_dim));
}

// A rotary table of more than two dimensions has separate angles for each sequence (rope_at).
kernels::QkvShape qkv_shape(const at::Tensor& qkv, const AttentionShape& shape, const RopeTable& rope) {
  const bool by_sequence = rope.defined() && rope.cos_SD.dim() > 2;
  return {qkv.size(0), qkv.size(1), shape.heads, shape.groups, shape.head_dim, by_sequence ? rope.cos_SD.stride(0) : 0};
}

struct Heads {
  at::Tensor q, k, v;  // [B, heads or groups, S, D]; queries and keys are rotated (RoPE)
};

// On a device, heads are stored in the layout that the output should have, [S, B, heads, D], because its attention
// kernels give the output the strides of q.
at::Tensor empty_heads(const at::Tensor& qkv, int64_t heads, int64_t head_dim) {
  const int64_t seq = qkv.size(0), batch = qkv.size(1);
  if (device_kernels_of(qkv) == nullptr) return at::empty({batch, heads, seq, head_dim}, qkv.options());
  return at::empty({seq, batch, heads, head_dim}, qkv.options()).permute({1, 2, 0, 3});
}

DeviceQkv device_qkv(const at::Tensor& qkv, const AttentionShape& shape, const RopeTable& rope, const Heads& h) {
  return {.number = device_number(qkv),
          .shape = qkv_shape(qkv, shape, rope),
          .strides = {strides_of(h.q), strides_of(h.k), strides_of(h.v)},
          .cos = device_in(rope.cos_SD),
          .sin = device_in(rope.sin_SD),
          .qkv = device_out(qkv),
          .q = device_out(h.q),
          .k = device_out(h.k),
          .v = device_out(h.v)};
}

// Fills `h`; on a CPU its heads are dense.
void split_heads(const at::Tensor& qkv, const AttentionShape& shape, const RopeTable& rope, const Heads& h) {
  if (TypeWatch* watch = type_watch_of_thread)
    for (const at::Tensor& heads : {h.q, h.k, h.v}) watch->is_made_of(heads, qkv);
  RANKLAB_CHECK(!rope.defined() || rope.cos_SD.scalar_type() == kernel_wide_type(qkv), ErrorKind::kInternal,
                .where = "causal_attention", .what = "the rotary table has a different type than its reader expects",
                .got = c10::toString(rope.cos_SD.scalar_type()), .want = c10::toString(kernel_wide_type(qkv)));
  if (const DeviceKernels* device = device_kernels_of(qkv)) {
    device->split_qkv(device_qkv(qkv, shape, rope, h));
    return;
  }
  for_kernel_type(qkv, [&]<typename T>() {
    kernels::split_qkv(qkv_shape(qkv, shape, rope), kernel_in<T>(qkv),
                       rope.defined() ? kernel_in<KernelWide<T>>(rope.cos_SD) : nullptr,
                       rope.defined() ? kernel_in<KernelWide<T>>(rope.sin_SD) : nullptr, kernel_out<T>(h.q),
                       kernel_out<T>(h.k), kernel_out<T>(h.v));
  });
}

// The adjoint of split_heads(); fills grad_qkv.
void merge_heads(const SoftmaxHeads& grads, const AttentionShape& shape, const RopeTable& rope,
                 const at::Tensor& grad_qkv) {
  const at::Tensor dq = with_dense_rows(grads.q), dk = with_dense_rows(grads.k), dv = with_dense_rows(grads.v);
  if (const DeviceKernels* device = device_kernels_of(dq)) {
    device->merge_qkv(device_qkv(grad_qkv, shape, rope, {dq, dk, dv}));
    return;
  }
  for_kernel_type(dq, [&]<typename T>() {
    kernels::merge_qkv(qkv_shape(grad_qkv, shape, rope), {strides_of(dq), strides_of(dk), strides_of(dv)},
                       kernel_in<T>(dq), kernel_in<T>(dk), kernel_in<T>(dv),
                       rope.defined() ? kernel_in<KernelWide<T>>(rope.cos_SD) : nullptr,
                       rope.defined() ? kernel_in<KernelWide<T>>(rope.sin_SD) : nullptr, kernel_out<T>(grad_qkv));
  });
}

at::Tensor empty_qkv(const at::Tensor& q, const AttentionShape& shape) {
  return at::empty({q.size(2), q.size(0), (shape.heads + 2 * shape.groups) * shape.head_dim}, q.options());
}

// Splits and rotates in one pass, and back in one pass. The heads are dense, because those of keys and values are sent
// to other ranks.
struct RotatedHeadsFunction : CustomFunction<RotatedHeadsFunction> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& qkv_in, const AttentionShape& shape,
                               const RopeTable& rope) {
    const at::Tensor qkv = qkv_in.contiguous();
    const CostScope cost("rope", 0.0, 2.0 * bytes_of(qkv), dtype_of(qkv));
    ctx->save_for_backward({rope.cos_SD, rope.sin_SD});
    const auto heads = [&](int64_t count) {
      return at::empty({qkv.size(1), count, qkv.size(0), shape.head_dim}, qkv.options());
    };
    const Heads h{heads(shape.heads), heads(shape.groups), heads(shape.groups)};
    split_heads(qkv, shape, rope, h);
    return {h.q, h.k, h.v};
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor& dq = grads[0];
    const AttentionShape shape{.heads = dq.size(1), .groups = grads[1].size(1), .head_dim = dq.size(3)};
    at::Tensor grad_qkv = empty_qkv(dq, shape);
    const CostScope cost("rope_backward", 0.0, 2.0 * bytes_of(grad_qkv), dtype_of(dq));
    merge_heads({dq, grads[1], grads[2]}, shape, {saved[0], saved[1]}, grad_qkv);
    return {grad_qkv, {}, {}};
  }
};

SoftmaxHeads plain_rotated_heads(const at::Tensor& qkv, const AttentionShape& shape, const RopeTable& rope) {
  const at::Tensor heads =
      qkv.view({qkv.size(0), qkv.size(1), shape.heads + 2 * shape.groups, shape.head_dim}).permute({1, 2, 0, 3});
  const auto parts = heads.split_with_sizes({shape.heads, shape.groups, shape.groups}, 1);
  return {apply_rope(parts[0], rope), apply_rope(parts[1], rope), parts[2]};
}

// What backward needs.
struct Softmaxed {
  Heads heads;
  at::Tensor out;  // [S, B, heads D]; the same tensor that the next layer saves, so no second copy per head is kept
  at::Tensor log_sum_exp;
  FollowedHeads followed;
};

CostScope forward_cost(const at::Tensor& qkv, const AttentionShape& shape) {
  return {
      {"flash_attention", kernel_shape(qkv, shape)}, attention_flops(qkv, shape), 2.0 * bytes_of(qkv), dtype_of(qkv)};
}

Softmaxed softmax_forward(const at::Tensor& qkv, const AttentionShape& shape, const RopeTable& rope,
                          const at::Tensor& sinks, bool for_backward) {
  const CostScope cost = forward_cost(qkv, shape);
  const Heads h{empty_heads(qkv, shape.heads, shape.head_dim), empty_heads(qkv, shape.groups, shape.head_dim),
                empty_heads(qkv, shape.groups, shape.head_dim)};
  split_heads(qkv, shape, rope, h);
  const SoftmaxedHeads out = softmax_attention({h.q, h.k, h.v}, score_rule(shape, sinks), for_backward);
  return {h, by_position(out.out), out.log_sum_exp, out.followed};
}

struct InputGrads {
  at::Tensor qkv, sinks;
};

InputGrads softmax_backward(const at::Tensor& grad_out, const Softmaxed& forward, const AttentionShape& shape,
                            const RopeTable& rope, const at::Tensor& sinks) {
  const auto& [q, k, v] = forward.heads;
  const int64_t batch = q.size(0), seq = q.size(2);
  at::Tensor grad_qkv = empty_qkv(q, shape);
  const CostScope cost({"flash_attention_backward", kernel_shape(grad_qkv, shape).of_backward()},
                       2.5 * attention_flops(grad_qkv, shape), 4.0 * bytes_of(grad_qkv), dtype_of(q));
  const auto by_head = [&](const at::Tensor& x_SBH) {
    return x_SBH.reshape({seq, batch, shape.heads, shape.head_dim}).permute({1, 2, 0, 3});
  };
  const SoftmaxedHeads softmaxed{by_head(forward.out), forward.log_sum_exp, forward.followed};
  const SoftmaxHeads grads = softmax_attention_grad({q, k, v}, softmaxed, by_head(grad_out), score_rule(shape, sinks));
  merge_heads(grads, shape, rope, grad_qkv);
  return {grad_qkv, sinks.requires_grad() ? sink_grad(softmaxed, by_head(grad_out), sinks) : at::Tensor()};
}

struct AttentionFunction : CustomFunction<AttentionFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& qkv, const at::Tensor& sinks,
                            const AttentionShape& shape, const RopeTable& rope, bool for_backward) {
    const Softmaxed f = softmax_forward(qkv.contiguous(), shape, rope, sinks, for_backward);
    // `out` costs no extra memory: the next layer saves it anyway.
    ctx->save_for_backward({f.heads.q, f.heads.k, f.heads.v, f.out, f.log_sum_exp, rope.cos_SD, rope.sin_SD,
                            f.followed.in.q, f.followed.in.k, f.followed.in.v, f.followed.out, sinks});
    ctx->saved_data["groups"] = shape.groups;
    ctx->saved_data["window"] = shape.window;
    ctx->saved_data["scale"] = shape.scale;
    ctx->saved_data["cap"] = shape.cap;
    return f.out;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const Softmaxed f{{saved[0], saved[1], saved[2]}, saved[3], saved[4], {{saved[7], saved[8], saved[9]}, saved[10]}};
    const AttentionShape shape{.heads = f.heads.q.size(1),
                               .groups = ctx->saved_data["groups"].toInt(),
                               .head_dim = f.heads.q.size(3),
                               .window = ctx->saved_data["window"].toInt(),
                               .scale = ctx->saved_data["scale"].toDouble(),
                               .cap = ctx->saved_data["cap"].toDouble()};
    const InputGrads d = softmax_backward(grads[0], f, shape, {saved[5], saved[6]}, saved[11]);
    return {d.qkv, d.sinks, {}, {}, {}};
  }
};

// Saves only qkv for backward.
class AttentionRecomputer final : public SoftmaxRecomputer<Softmaxed> {
 public:
  AttentionRecomputer(at::Tensor qkv, const AttentionShape& shape, RopeTable rope, at::Tensor sinks)
      : qkv_(std::move(qkv)), shape_(shape), rope_(std::move(rope)), sinks_(std::move(sinks)) {}

  InputGrads input_grads(const at::Tensor& grad_out) {
    InputGrads grads = softmax_backward(grad_out, computed(), shape_, rope_, sinks_);
    qkv_.reset();
    differentiated();
    return grads;
  }

 private:
  Softmaxed forward() const override { return softmax_forward(qkv_, shape_, rope_, sinks_, /*for_backward=*/true); }
  CostScope forward_cost() const override { return ranklab::forward_cost(qkv_, shape_); }

  at::Tensor qkv_;
  AttentionShape shape_;
  RopeTable rope_;
  at::Tensor sinks_;
};

struct RecomputedAttentionFunction : CustomFunction<RecomputedAttentionFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& /*qkv*/, const at::Tensor& /*sinks*/,
                            const c10::intrusive_ptr<AttentionRecomputer>& recomputer) {
    ctx->saved_data["recomputer"] = c10::IValue::make_capsule(recomputer);
    return recomputer->first_output();
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto recomputer = ctx->saved_data["recomputer"].toCapsule();
    const InputGrads d = static_cast<AttentionRecomputer&>(*recomputer).input_grads(grads[0]);
    return {d.qkv, d.sinks, {}};
  }
};

}  // namespace

at::Tensor causal_attention(const at::Tensor& qkv, const AttentionShape& shape, const RopeTable& rope,
                            const at::Tensor& sinks) {
  if (gpu_attention() == GpuAttention::kUnfused)
    return unfused_attention(rotated_heads(qkv, shape, rope), score_rule(shape, sinks), /*recompute=*/false);
  if (!has_row_kernels(qkv)) return causal_attention_reference(qkv, shape, rope, sinks);
  return AttentionFunction::apply(qkv, sinks, shape, rope, at::GradMode::is_enabled() && qkv.requires_grad());
}

RecomputableOutput recomputable_causal_attention(const at::Tensor& qkv, const AttentionShape& shape,
                                                 const RopeTable& rope, const at::Tensor& sinks) {
  if (gpu_attention() == GpuAttention::kUnfused)
    return {unfused_attention(rotated_heads(qkv, shape, rope), score_rule(shape, sinks), /*recompute=*/true)};
  if (!at::GradMode::is_enabled() || !has_row_kernels(qkv)) return {causal_attention(qkv, shape, rope, sinks)};
  const auto recomputer = c10::make_intrusive<AttentionRecomputer>(qkv.detach().contiguous(), shape, rope, sinks);
  return {RecomputedAttentionFunction::apply(qkv, sinks, recomputer), recomputer};
}

ScoreRule score_rule(const AttentionShape& shape, const at::Tensor& sinks) {
  const auto scale = shape.scale > 0 ? std::optional(shape.scale) : std::nullopt;
  return {.scale = scale, .window = shape.window, .cap = shape.cap, .sinks = sinks, .max_logits = shape.max_logits};
}

SoftmaxHeads rotated_heads(const at::Tensor& qkv, const AttentionShape& shape, const RopeTable& rope) {
  if (!rope.defined() || !has_row_kernels(qkv)) return plain_rotated_heads(qkv, shape, rope);
  const variable_list heads = RotatedHeadsFunction::apply(qkv, shape, rope);
  return {heads[0], heads[1], heads[2]};
}

at::Tensor causal_attention_reference(const at::Tensor& qkv, const AttentionShape& shape, const RopeTable& rope,
                                      const at::Tensor& sinks) {
  const auto [q, k, v] = plain_rotated_heads(qkv, shape, rope);
  const ScoreRule rule = score_rule(shape, sinks);
  note_max_logits({q, k, v}, causal_band(rule, q.size(2)), rule);
  return by_position(plain_attention({q, repeat_groups(k, shape.heads), repeat_groups(v, shape.heads)}, rule));
}

}  // namespace ranklab
