#include "core/nn/attention/latent_attention.h"

#include <algorithm>
#include <utility>

#include "core/nn/attention/attention_sinks.h"
#include "core/nn/attention/max_logit.h"
#include "core/nn/attention/softmax_recomputer.h"
#include "core/nn/attention/unfused_attention.h"
#include "core/nn/custom_function.h"
#include "core/nn/kernels/kernel_path.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "core/sim/op_observer.h"
#include "core/spec/attention_span.h"

namespace ranklab {
namespace {

// The number of GEMMs with queries and keys, and the number with values; each costs S^2 B heads times the corresponding
// width.
struct Products {
  int with_keys = 1;
  int with_values = 1;
};

CostScope attention_cost(const char* kernel, const at::Tensor& q, const LatentShape& shape, Products products,
                         int passes) {
  const auto seq = static_cast<double>(q.size(0));
  const double span = attention_span(q.size(0), shape.window);
  const double width = static_cast<double>(products.with_keys * shape.query_head() + products.with_values * shape.v);
  const auto per_head = static_cast<double>(shape.query_head() + shape.nope + 2 * shape.v);  // q, k, v and the output
  const auto heads = static_cast<double>(q.size(1) * shape.heads);
  const KernelShape forward = KernelShape::attention(
      seq * heads, span / 2, width / static_cast<double>(products.with_keys + products.with_values));
  return {{kernel, products.with_keys > 1 ? forward.of_backward() : forward},
          span * seq * heads * width,
          passes * seq * heads * per_head * static_cast<double>(q.itemsize()),
          dtype_of(q)};
}

// [S, B, heads D] -> [B, heads, S, D], a view.
at::Tensor by_head(const at::Tensor& x_SBH, int64_t heads) {
  return x_SBH.view({x_SBH.size(0), x_SBH.size(1), heads, x_SBH.size(2) / heads}).permute({1, 2, 0, 3});
}

// Rotates the pairs (first half, second half) of x [B, heads, S, rope]; `back`: by the negative angle, for backward.
void rotate_into(at::Tensor out, const at::Tensor& x, const RopeTable& table, bool back = false) {
  if (!table.defined()) {
    out.copy_(x);
    return;
  }
  const at::Tensor cos = table.cos_SD.narrow(0, 0, x.size(-2)), sin = table.sin_SD.narrow(0, 0, x.size(-2));
  const auto from = x.chunk(2, -1), to = out.chunk(2, -1);
  const ScratchScope scratch;  // a CPU widens 16-bit numbers for the rotation
  at::mul_out(const_cast<at::Tensor&>(to[0]), from[0], cos);
  at::mul_out(const_cast<at::Tensor&>(to[1]), from[1], cos);
  to[0].addcmul_(from[1], sin, back ? 1 : -1);
  to[1].addcmul_(from[0], sin, back ? -1 : 1);
}

struct LatentHeads {
  at::Tensor q, k, v;  // [B, heads, S, D], D: the larger head dimension of keys and values
};

// The memory layout stays that of the projections, [S, B, heads, D], so nothing is transposed in memory.
LatentHeads make_heads(const LatentInput& in, const LatentShape& s, const RopeTable& rope) {
  const int64_t seq = in.q.size(0), batch = in.q.size(1), width = std::max(s.query_head(), s.v);
  const auto empty = [&] { return at::empty({seq, batch, s.heads, width}, in.q.options()).permute({1, 2, 0, 3}); };
  const at::Tensor q_in = by_head(in.q, s.heads), kv = by_head(in.kv, s.heads);
  LatentHeads h{empty(), empty(), kv.narrow(-1, s.nope, s.v)};
  h.q.narrow(-1, 0, s.nope).copy_(q_in.narrow(-1, 0, s.nope));
  h.k.narrow(-1, 0, s.nope).copy_(kv.narrow(-1, 0, s.nope));
  rotate_into(h.q.narrow(-1, s.nope, s.rope), q_in.narrow(-1, s.nope, s.rope), rope);
  // The shared part is rotated once, then copied to each head.
  at::Tensor shared = at::empty({seq, batch, 1, s.rope}, in.q.options()).permute({1, 2, 0, 3});
  rotate_into(shared, by_head(in.k_rope, 1), rope);
  h.k.narrow(-1, s.nope, s.rope).copy_(shared.expand({batch, s.heads, seq, s.rope}));
  if (width > s.query_head()) {
    h.q.narrow(-1, s.query_head(), width - s.query_head()).zero_();
    h.k.narrow(-1, s.query_head(), width - s.query_head()).zero_();
  }
  if (width > s.v) {
    h.v = at::constant_pad_nd(h.v, {0, width - s.v});
  } else if (h.v.is_cuda() && s.nope % 8 != 0) {
    h.v = h.v.contiguous();  // the CUDA kernel reads 16 bytes at a time
  }
  return h;
}

// Queries in differentiable ops.
at::Tensor join_queries(const at::Tensor& q, const LatentShape& s, const RopeTable& rope) {
  const auto parts = by_head(q.contiguous(), s.heads).split_with_sizes({s.nope, s.rope}, -1);
  return at::cat({parts[0], apply_rope(parts[1], rope)}, -1);
}

LatentKeys join_keys(const at::Tensor& kv, const at::Tensor& rotated, const LatentShape& s) {
  const auto parts = by_head(kv.contiguous(), s.heads).split_with_sizes({s.nope, s.v}, -1);
  const at::Tensor shared = by_head(rotated.contiguous(), 1);
  return {at::cat({parts[0], shared.expand({parts[0].size(0), s.heads, parts[0].size(2), s.rope})}, -1), parts[1]};
}

LatentHeads join_heads(const LatentInput& in, const LatentShape& s, const RopeTable& rope) {
  const LatentKeys keys = join_keys(in.kv, rotated_keys(in.k_rope, rope), s);
  return {join_queries(in.q, s, rope), keys.k, keys.v};
}

// Pads the narrower of keys and values with zeros.
at::Tensor of_one_width(const at::Tensor& x, const LatentShape& shape) {
  const int64_t missing = std::max(shape.query_head(), shape.v) - x.size(-1);
  return missing > 0 ? at::constant_pad_nd(x, {0, missing}) : x;
}

// What backward needs besides the inputs.
struct LatentSoftmaxed {
  at::Tensor out;  // [S, B, heads v]
  at::Tensor log_sum_exp;
  FollowedHeads followed;
};

CostScope forward_cost(const at::Tensor& q, const LatentShape& shape) {
  return attention_cost("latent_attention", q, shape, {}, 1);
}

LatentSoftmaxed latent_softmax_forward(const LatentInput& in, const LatentShape& shape, const RopeTable& rope,
                                       const at::Tensor& sinks, bool for_backward) {
  const CostScope cost = forward_cost(in.q, shape);
  const LatentHeads h = make_heads(in, shape, rope);
  const SoftmaxedHeads softmaxed = softmax_attention({h.q, h.k, h.v}, score_rule(shape, sinks), for_backward);
  return {by_position(softmaxed.out.narrow(-1, 0, shape.v)), softmaxed.log_sum_exp, softmaxed.followed};
}

variable_list input_grads(const LatentInput& in, const LatentHeads& d, const LatentShape& s, const RopeTable& rope) {
  const at::Tensor dq = at::empty_like(in.q), dkv = at::empty_like(in.kv), dk_rope = at::empty_like(in.k_rope);
  by_head(dq, s.heads).narrow(-1, 0, s.nope).copy_(d.q.narrow(-1, 0, s.nope));
  rotate_into(by_head(dq, s.heads).narrow(-1, s.nope, s.rope), d.q.narrow(-1, s.nope, s.rope), rope, true);
  by_head(dkv, s.heads).narrow(-1, 0, s.nope).copy_(d.k.narrow(-1, 0, s.nope));
  by_head(dkv, s.heads).narrow(-1, s.nope, s.v).copy_(d.v.narrow(-1, 0, s.v));
  rotate_into(by_head(dk_rope, 1), d.k.narrow(-1, s.nope, s.rope).sum(1, true), rope, true);
  return {dq, dkv, dk_rope};
}

// The gradients of queries, latents, the rotary key and sinks.
variable_list softmax_backward(const at::Tensor& grad_out, const LatentInput& in, const LatentSoftmaxed& forward,
                               const LatentShape& shape, const RopeTable& rope, const at::Tensor& sinks) {
  // The recomputed scores, dQ and dK are GEMMs with keys and queries; dP and dV are GEMMs with values.
  const CostScope cost =
      attention_cost("latent_attention_backward", in.q, shape, {.with_keys = 3, .with_values = 2}, 3);
  const FollowedHeads& followed = forward.followed;
  const LatentHeads h =
      followed.defined() ? LatentHeads{followed.in.q, followed.in.k, followed.in.v} : make_heads(in, shape, rope);
  const int64_t padding = h.q.size(-1) - shape.v;
  const auto wide = [&](const at::Tensor& x_SBH) {
    const at::Tensor heads = by_head(x_SBH.contiguous(), shape.heads);
    return padding > 0 ? at::constant_pad_nd(heads, {0, padding}) : heads;
  };
  const SoftmaxedHeads softmaxed{wide(forward.out), forward.log_sum_exp, followed};
  const SoftmaxHeads d = softmax_attention_grad({h.q, h.k, h.v}, softmaxed, wide(grad_out), score_rule(shape, sinks));
  variable_list grads = input_grads(in, {d.q, d.k, d.v}, shape, rope);
  grads.push_back(sinks.requires_grad() ? sink_grad(softmaxed, wide(grad_out), sinks) : at::Tensor());
  return grads;
}

LatentInput dense(const at::Tensor& q, const at::Tensor& kv, const at::Tensor& k_rope) {
  return {q.contiguous(), kv.contiguous(), k_rope.contiguous()};
}

struct LatentFunction : CustomFunction<LatentFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& q, const at::Tensor& kv, const at::Tensor& k_rope,
                            const at::Tensor& sinks, const LatentShape& shape, const RopeTable& rope,
                            bool for_backward) {
    const LatentInput in = dense(q, kv, k_rope);
    const LatentSoftmaxed f = latent_softmax_forward(in, shape, rope, sinks, for_backward);
    ctx->save_for_backward({in.q, in.kv, in.k_rope, f.out, f.log_sum_exp, rope.cos_SD, rope.sin_SD, f.followed.in.q,
                            f.followed.in.k, f.followed.in.v, f.followed.out, sinks});
    ctx->saved_data["shape"] = std::vector<int64_t>{shape.heads, shape.nope, shape.rope, shape.v, shape.window};
    ctx->saved_data["scale"] = shape.softmax_scale;
    ctx->saved_data["cap"] = shape.cap;
    return f.out;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const auto sizes = ctx->saved_data["shape"].toIntVector();
    const LatentShape shape{sizes[0],
                            sizes[1],
                            sizes[2],
                            sizes[3],
                            ctx->saved_data["scale"].toDouble(),
                            sizes[4],
                            ctx->saved_data["cap"].toDouble()};
    const LatentSoftmaxed f{saved[3], saved[4], {{saved[7], saved[8], saved[9]}, saved[10]}};
    variable_list result =
        softmax_backward(grads[0], {saved[0], saved[1], saved[2]}, f, shape, {saved[5], saved[6]}, saved[11]);
    result.resize(7);
    return result;
  }
};

// Saves only the inputs for backward.
class LatentRecomputer final : public SoftmaxRecomputer<LatentSoftmaxed> {
 public:
  LatentRecomputer(LatentInput in, const LatentShape& shape, RopeTable rope, at::Tensor sinks)
      : in_(std::move(in)), shape_(shape), rope_(std::move(rope)), sinks_(std::move(sinks)) {}

  variable_list input_grads(const at::Tensor& grad_out) {
    variable_list grads = softmax_backward(grad_out, in_, computed(), shape_, rope_, sinks_);
    in_ = {};
    differentiated();
    return grads;
  }

 private:
  LatentSoftmaxed forward() const override {
    return latent_softmax_forward(in_, shape_, rope_, sinks_, /*for_backward=*/true);
  }
  CostScope forward_cost() const override { return ranklab::forward_cost(in_.q, shape_); }

  LatentInput in_;
  LatentShape shape_;
  RopeTable rope_;
  at::Tensor sinks_;
};

struct RecomputedLatentFunction : CustomFunction<RecomputedLatentFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& /*q*/, const at::Tensor& /*kv*/,
                            const at::Tensor& /*k_rope*/, const at::Tensor& /*sinks*/,
                            const c10::intrusive_ptr<LatentRecomputer>& recomputer) {
    ctx->saved_data["recomputer"] = c10::IValue::make_capsule(recomputer);
    return recomputer->first_output();
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto recomputer = ctx->saved_data["recomputer"].toCapsule();
    variable_list result = static_cast<LatentRecomputer&>(*recomputer).input_grads(grads[0]);
    result.resize(5);
    return result;
  }
};

at::Tensor unfused(const LatentInput& input, const LatentShape& shape, const RopeTable& rope, const at::Tensor& sinks,
                   bool recompute) {
  const LatentHeads h = join_heads(input, shape, rope);
  return unfused_attention({h.q, h.k, h.v}, score_rule(shape, sinks), recompute);
}

}  // namespace

at::Tensor latent_attention(const LatentInput& input, const LatentShape& shape, const RopeTable& rope,
                            const at::Tensor& sinks) {
  if (gpu_attention() == GpuAttention::kUnfused) return unfused(input, shape, rope, sinks, /*recompute=*/false);
  if (has_row_kernels(input.q)) {
    const bool for_backward = at::GradMode::is_enabled() &&
                              (input.q.requires_grad() || input.kv.requires_grad() || input.k_rope.requires_grad());
    return LatentFunction::apply(input.q, input.kv, input.k_rope, sinks, shape, rope, for_backward);
  }
  const CostScope cost = forward_cost(input.q, shape);
  const LatentHeads h = join_heads(input, shape, rope);
  const ScoreRule rule = score_rule(shape, sinks);
  note_max_logits({h.q, h.k, h.v}, causal_band(rule, h.q.size(2)), rule);
  return by_position(plain_attention({h.q, h.k, h.v}, rule));
}

RecomputableOutput recomputable_latent_attention(const LatentInput& input, const LatentShape& shape,
                                                 const RopeTable& rope, const at::Tensor& sinks) {
  if (gpu_attention() == GpuAttention::kUnfused) return {unfused(input, shape, rope, sinks, /*recompute=*/true)};
  if (!at::GradMode::is_enabled() || !has_row_kernels(input.q)) return {latent_attention(input, shape, rope, sinks)};
  const LatentInput kept = dense(input.q.detach(), input.kv.detach(), input.k_rope.detach());
  const auto recomputer = c10::make_intrusive<LatentRecomputer>(kept, shape, rope, sinks);
  return {RecomputedLatentFunction::apply(input.q, input.kv, input.k_rope, sinks, recomputer), recomputer};
}

ScoreRule score_rule(const LatentShape& shape, const at::Tensor& sinks) {
  return {.scale = shape.softmax_scale,
          .window = shape.window,
          .cap = shape.cap,
          .sinks = sinks,
          .max_logits = shape.max_logits};
}

SoftmaxHeads latent_heads(const LatentInput& input, const LatentShape& shape, const RopeTable& rope) {
  const LatentHeads h = join_heads(input, shape, rope);
  return {of_one_width(h.q, shape), of_one_width(h.k, shape), of_one_width(h.v, shape)};
}

at::Tensor latent_queries(const at::Tensor& q, const LatentShape& shape, const RopeTable& rope) {
  return of_one_width(join_queries(q, shape, rope), shape);
}

LatentKeys latent_keys(const at::Tensor& kv, const at::Tensor& k_rope, const LatentShape& shape) {
  const LatentKeys keys = join_keys(kv, k_rope, shape);
  return {of_one_width(keys.k, shape), of_one_width(keys.v, shape)};
}

at::Tensor rotated_keys(const at::Tensor& k_rope, const RopeTable& rope) {
  return by_position(apply_rope(by_head(k_rope.contiguous(), 1), rope));
}

at::Tensor latent_attention_reference(const LatentInput& input, const LatentShape& shape, const RopeTable& rope,
                                      const at::Tensor& sinks) {
  const LatentHeads h = join_heads(input, shape, rope);
  return by_position(softmax_attention_reference({h.q, h.k, h.v}, score_rule(shape, sinks)));
}

}  // namespace ranklab
