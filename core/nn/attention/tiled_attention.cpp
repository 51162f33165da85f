#include "core/nn/attention/tiled_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/nn/attention/max_logit.h"
#include "core/nn/attention/window_attention.h"
#include "core/nn/kernels/kernel_path.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

// Queries [first, first + count), and the range of keys to which any of them attends.
struct QueryBlock {
  int64_t first, count, key, keys;
};

template <typename F>
void for_query_blocks(int64_t seq, int64_t window, const F& use) {
  constexpr int64_t kQueries = 128;
  for (int64_t first = 0; first < seq; first += kQueries) {
    const int64_t count = std::min(kQueries, seq - first);
    const int64_t key = window > 0 ? std::max<int64_t>(0, first - window + 1) : 0;
    use(QueryBlock{first, count, key, first + count - key});
  }
}

SoftmaxHeads widened(const SoftmaxHeads& in) {
  const at::ScalarType wide = kernel_wide_type(in.q);
  return {in.q.to(wide), in.k.to(wide), in.v.to(wide)};
}

class Scores {
 public:
  Scores(const SoftmaxHeads& in, const ScoreRule& rule)
      : in_(in),
        cap_(rule.cap),
        window_(rule.window > 0 ? rule.window : in.q.size(2)),
        scale_(rule.scale.value_or(1.0 / std::sqrt(static_cast<double>(in.q.size(3))))) {}

  at::Tensor queries(const at::Tensor& x, const QueryBlock& b) const { return x.narrow(2, b.first, b.count); }
  at::Tensor keys(const at::Tensor& x, const QueryBlock& b) const { return x.narrow(2, b.key, b.keys); }
  // [B, heads, queries, keys]: the scores, or with a cap tanh(score / cap).
  at::Tensor bounded(const QueryBlock& b) const {
    at::Tensor products = at::matmul(queries(in_.q, b), keys(in_.k, b).transpose(-1, -2));
    return cap_ > 0 ? products.mul_(scale_ / cap_).tanh_() : products.mul_(scale_);
  }
  // The scores, with -infinity where a query must not attend to a key.
  at::Tensor masked(const at::Tensor& bounded, const QueryBlock& b) const {
    const at::Tensor seen = window_mask(b.first, b.count, b.key, b.keys, window_, in_.q.device());
    return (bounded * (cap_ > 0 ? cap_ : 1)).masked_fill_(seen.logical_not(), -std::numeric_limits<double>::infinity());
  }
  // The gradient of the products of queries and keys, given the gradient of the scores, which is overwritten.
  at::Tensor of_products(at::Tensor grad_scores, const at::Tensor& bounded) const {
    grad_scores.mul_(scale_);
    // d tanh = 1 - tanh^2; cap and 1 / cap cancel.
    return cap_ > 0 ? grad_scores.mul_(1 - bounded * bounded) : grad_scores;
  }

 private:
  const SoftmaxHeads& in_;
  double cap_;
  int64_t window_;
  double scale_;
};

}  // namespace

SoftmaxedHeads tiled_attention(const SoftmaxHeads& narrow, const ScoreRule& rule) {
  const SoftmaxHeads in = widened(narrow);
  const Scores scores(in, rule);
  SoftmaxedHeads result{at::empty_like(in.q), at::empty({in.q.size(0), in.q.size(1), in.q.size(2)}, in.q.options())};
  for_query_blocks(in.q.size(2), rule.window, [&](const QueryBlock& b) {
    const at::Tensor masked = scores.masked(scores.bounded(b), b);
    const at::Tensor largest = masked.amax(-1, true);
    note_scores(largest, rule.max_logits);
    const at::Tensor weights = (masked - largest).exp_(), total = weights.sum(-1, true);
    scores.queries(result.out, b).copy_(at::matmul(weights, scores.keys(in.v, b)) / total);
    result.log_sum_exp.narrow(2, b.first, b.count).copy_((largest + total.log()).squeeze(-1));
  });
  result.out = result.out.to(narrow.q.scalar_type());
  return result;
}

SoftmaxHeads tiled_attention_grad(const SoftmaxHeads& narrow, const SoftmaxedHeads& forward, const at::Tensor& grad_out,
                                  const ScoreRule& rule) {
  const SoftmaxHeads in = widened(narrow);
  const at::ScalarType wide = in.q.scalar_type(), type = narrow.q.scalar_type();
  const Scores scores(in, rule);
  const at::Tensor out = forward.out.to(wide), grad = grad_out.to(wide);
  const SoftmaxHeads d{at::empty_like(in.q), at::zeros_like(in.k), at::zeros_like(in.v)};
  for_query_blocks(in.q.size(2), rule.window, [&](const QueryBlock& b) {
    const at::Tensor bounded = scores.bounded(b), grad_b = scores.queries(grad, b);
    const at::Tensor log_sum_exp = forward.log_sum_exp.narrow(2, b.first, b.count).unsqueeze(-1);
    const at::Tensor weights = (scores.masked(bounded, b) - log_sum_exp).exp_();
    const at::Tensor along = (grad_b * scores.queries(out, b)).sum(-1, true);
    const at::Tensor grad_weights = at::matmul(grad_b, scores.keys(in.v, b).transpose(-1, -2));
    const at::Tensor grad_products = scores.of_products(weights * (grad_weights - along), bounded);
    scores.queries(d.q, b).copy_(at::matmul(grad_products, scores.keys(in.k, b)));
    scores.keys(d.k, b).add_(at::matmul(grad_products.transpose(-1, -2), scores.queries(in.q, b)));
    scores.keys(d.v, b).add_(at::matmul(weights.transpose(-1, -2), grad_b));
  });
  return {d.q.to(type), d.k.to(type), d.v.to(type)};
}

}  // namespace ranklab
