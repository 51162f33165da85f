#include "core/nn/attention/unfused_attention.h"

#include <cmath>
#include <limits>

#include "core/nn/attention/attention_sinks.h"
#include "core/nn/attention/max_logit.h"
#include "core/nn/attention/window_attention.h"
#include "core/nn/custom_function.h"
#include "core/nn/kernels/kernel_path.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "core/sim/op_cost.h"
#include "core/sim/op_observer.h"
#include "core/sim/recompute_scope.h"

namespace ranklab {
namespace {

struct Scoring {
  double scale = 1;
  int64_t window = 0;  // 0: all previous positions
  at::Tensor max_logits = {};
};

double bytes_of_scores(const at::Tensor& x) { return static_cast<double>(x.nbytes()); }

// [B, heads, S, D] as one batch of matrices.
at::Tensor matrices(const at::Tensor& x) { return x.reshape({x.size(0) * x.size(1), x.size(2), x.size(3)}); }

at::Tensor product(const at::Tensor& a, const at::Tensor& b) {
  return without_scratch([&] { return at::bmm(a, b); });
}

// Probabilities of keys [B heads, S, S], and of the sink for each query [B, heads, S]; the latter undefined without
// sinks.
struct Shares {
  at::Tensor p, of_sink;
};

Shares probabilities(const at::Tensor& q, const at::Tensor& k, const at::Tensor& sinks, const Scoring& how) {
  const at::Tensor scores = product(matrices(q), matrices(k).transpose(1, 2));
  // Finding the largest score of each head reads the scores once more.
  const double passes = how.max_logits.defined() && !recomputing() ? 3 : 2;
  const CostScope cost("masked_softmax", 0.0, passes * bytes_of_scores(scores), dtype_of(scores.scalar_type()));
  const int64_t seq = q.size(2);
  const at::Tensor seen = window_mask(0, seq, 0, seq, how.window > 0 ? how.window : seq, q.device());
  const at::Tensor masked =
      (scores * how.scale).masked_fill_(seen.logical_not(), -std::numeric_limits<double>::infinity());
  note_scores(masked.view({q.size(0), q.size(1), seq, seq}), how.max_logits);
  if (!sinks.defined()) return {at::softmax(masked, -1), {}};
  const at::Tensor over_keys = at::logsumexp(masked.to(kernel_wide_type(q)), {-1}).view({q.size(0), q.size(1), seq});
  const at::Tensor of_sink = at::sigmoid(sinks.to(over_keys.scalar_type()).view({1, -1, 1}) - over_keys);
  at::Tensor p = at::softmax(masked, -1);
  const at::Tensor rest = (1 - of_sink).view({-1, seq, 1});
  return {without_scratch([&] { return p.mul_(rest); }), of_sink};  // a CPU widens all of p for it
}

struct UnfusedAttention : CustomFunction<UnfusedAttention> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const at::Tensor& sinks, const Scoring& how, bool recompute) {
    const auto [p, of_sink] = probabilities(q, k, sinks, how);
    variable_list kept = {q, k, v, sinks};
    if (!recompute) kept.insert(kept.end(), {p, of_sink});
    ctx->save_for_backward(std::move(kept));
    ctx->saved_data["scale"] = how.scale;
    ctx->saved_data["window"] = how.window;
    return product(p, matrices(v)).view({q.size(0), q.size(1), q.size(2), v.size(3)});
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &q = saved[0], &k = saved[1], &v = saved[2], &sinks = saved[3];
    const Scoring how{ctx->saved_data["scale"].toDouble(), ctx->saved_data["window"].toInt()};
    const auto [p, of_sink] = saved.size() > 4 ? Shares{saved[4], saved[5]} : recomputed(q, k, sinks, how);
    const at::Tensor d = matrices(grads[0].contiguous());
    const at::Tensor dv = product(p.transpose(1, 2), d), dp = product(d, matrices(v).transpose(1, 2));
    const at::Tensor ds = score_grad(dp, p, how.scale);
    return {product(ds, matrices(k)).view_as(q),
            product(ds.transpose(1, 2), matrices(q)).view_as(k),
            dv.view_as(v),
            sinks.requires_grad() ? sink_grad(dp, p, of_sink, sinks) : at::Tensor(),
            {},
            {}};
  }

  static Shares recomputed(const at::Tensor& q, const at::Tensor& k, const at::Tensor& sinks, const Scoring& how) {
    const RecomputeScope uncounted;
    return probabilities(q, k, sinks, how);
  }

  // A sink has no value, so no gradient reaches its probability directly.
  static at::Tensor sink_grad(const at::Tensor& dp, const at::Tensor& p, const at::Tensor& of_sink,
                              const at::Tensor& sinks) {
    const NoCostScope within_the_kernel;
    const at::Tensor products = dp * p;
    // A CPU widens its operand when it sums in a wider type.
    const at::Tensor along = without_scratch([&] { return products.sum(-1, false, of_sink.scalar_type()); });
    return (of_sink * along.view_as(of_sink)).sum(at::IntArrayRef{0, 2}).neg_().to(sinks.scalar_type());
  }

  // The gradient of the scores before they were scaled: p (dp - sum(dp p)) scale.
  static at::Tensor score_grad(const at::Tensor& dp, const at::Tensor& p, double scale) {
    const CostScope cost("masked_softmax_backward", 0.0, 3 * bytes_of_scores(p), dtype_of(p.scalar_type()));
    return (p * (dp - (dp * p).sum(-1, true))).mul_(scale);
  }
};

}  // namespace

at::Tensor unfused_attention(const SoftmaxHeads& in, const ScoreRule& rule, bool recompute) {
  const int64_t heads = in.q.size(1), seq = in.q.size(2);
  const SoftmaxHeads all{in.q, repeat_groups(in.k, heads), repeat_groups(in.v, heads)};
  if (rule.cap > 0) {
    note_max_logits(in, causal_band(rule, seq), rule);
    return by_position(softmax_attention_reference(all, rule));  // the reference's chain of plain ops
  }
  const Scoring how{rule.scale.value_or(1.0 / std::sqrt(static_cast<double>(in.q.size(3)))),
                    rule.has_window(seq) ? rule.window : 0, rule.max_logits};
  return by_position(
      UnfusedAttention::apply(all.q.contiguous(), all.k.contiguous(), all.v.contiguous(), rule.sinks, how, recompute));
}

}  // namespace ranklab
