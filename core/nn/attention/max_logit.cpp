#include "core/nn/attention/max_logit.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/nn/kernels/kernel_path.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "core/sim/op_cost.h"
#include "core/sim/op_observer.h"
#include "core/sim/recompute_scope.h"

namespace ranklab {
namespace {

constexpr int64_t kQueriesAtOnce = 128;

// A recomputation sees the scores of the forward once more; tensors on the meta device have none.
bool is_wanted(const at::Tensor& max_logits) { return max_logits.defined() && !recomputing() && !max_logits.is_meta(); }

void raise(const at::Tensor& max_logits, const at::Tensor& largest) {
  max_logits.copy_(at::maximum(max_logits, largest.detach().to(max_logits.scalar_type()).view(max_logits.sizes())));
}

// The largest product of these queries [B, heads, count, D], the first of which has index `first`, with keys [B,
// groups, N, D] that they see: [heads]; undefined: they see none.
at::Tensor largest_product(const at::Tensor& q, int64_t first, const at::Tensor& k, const KeyBand& band) {
  const int64_t batch = q.size(0), groups = k.size(1), repeats = q.size(1) / groups, count = q.size(2);
  const int64_t begin = std::max<int64_t>(0, first + band.first);
  const int64_t end = std::min(k.size(2), first + count + band.last);
  if (begin >= end) return {};
  const at::Tensor queries = q.reshape({batch, groups, repeats * count, q.size(3)});
  const at::Tensor keys = k.narrow(2, begin, end - begin).transpose(-1, -2);
  at::Tensor products = at::matmul(queries, keys).view({batch, groups, repeats, count, end - begin});
  if (begin < first + count - 1 + band.first || end - 1 > first + band.last) {
    const auto options = at::TensorOptions(at::kLong).device(q.device());
    const at::Tensor query = at::arange(first, first + count, options).unsqueeze(1);
    const at::Tensor key = at::arange(begin, end, options);
    const at::Tensor seen = key.ge(query + band.first).logical_and(key.le(query + band.last));
    products.masked_fill_(seen.logical_not(), -std::numeric_limits<double>::infinity());
  }
  return products.amax({0, 3, 4}).view({-1});
}

}  // namespace

KeyBand causal_band(const ScoreRule& rule, int64_t seq) {
  return {.first = 1 - (rule.has_window(seq) ? rule.window : seq), .last = 0};
}

// Scale and cap grow with the product, so they are applied to the largest alone.
void note_max_logits(const SoftmaxHeads& in, const KeyBand& band, const ScoreRule& rule) {
  if (!is_wanted(rule.max_logits)) return;
  const at::NoGradGuard no_grad;
  const NoCostScope within_the_kernel;
  const ScratchScope tiles;
  const at::ScalarType wide = kernel_wide_type(in.q);
  const double scale = rule.scale.value_or(1.0 / std::sqrt(static_cast<double>(in.q.size(3))));
  const at::Tensor k = in.k.detach().to(wide), q = in.q.detach();
  for (int64_t first = 0; first < q.size(2); first += kQueriesAtOnce) {
    const int64_t count = std::min(kQueriesAtOnce, q.size(2) - first);
    at::Tensor largest = largest_product(q.narrow(2, first, count).to(wide), first, k, band);
    if (!largest.defined()) continue;
    largest = largest * scale;
    raise(rule.max_logits, rule.cap > 0 ? at::tanh(largest / rule.cap) * rule.cap : largest);
  }
}

void note_scores(const at::Tensor& scores, const at::Tensor& max_logits) {
  if (!is_wanted(max_logits)) return;
  const at::NoGradGuard no_grad;
  const NoCostScope within_the_kernel;
  raise(max_logits, scores.amax({0, 2, 3}));
}

void charge_max_logits(const at::Tensor& max_logits, int64_t queries) {
  if (!max_logits.defined() || recomputing()) return;
  const double bytes =
      2.0 * static_cast<double>(queries * max_logits.numel()) * static_cast<double>(max_logits.itemsize());
  const CostScope cost("max_logit", 0.0, bytes, dtype_of(max_logits.scalar_type()));
}

}  // namespace ranklab
