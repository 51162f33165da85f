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

constexpr int64_t kKeysAtOnce = 2048;

// A recomputation sees the same scores as the forward, so it need not look again; tensors on the meta device have no
// values.
bool is_wanted(const at::Tensor& max_logits) { return max_logits.defined() && !recomputing() && !max_logits.is_meta(); }

void raise(const at::Tensor& max_logits, const at::Tensor& largest) {
  max_logits.copy_(at::maximum(max_logits, largest.detach().to(max_logits.scalar_type()).view(max_logits.sizes())));
}

// A GPU gets fewer and larger products, as long as each takes at most 128 MiB.
int64_t queries_at_once(const at::Tensor& q, const at::Tensor& k) {
  constexpr int64_t kOfHost = 128, kMost = 512, kNumbers = int64_t{1} << 25;
  if (!q.is_cuda()) return kOfHost;
  return std::clamp<int64_t>(kNumbers / (q.size(0) * q.size(1) * std::min(k.size(2), kKeysAtOnce)), 1, kMost);
}

// A GPU's tensor cores multiply 16-bit operands and add in fp32, with the same result as if the operands were widened
// first.
bool adds_wide(const at::Tensor& x) { return x.is_cuda() && x.itemsize() == 2; }

// Queries [first, first + count) of all heads.
class Queries {
 public:
  Queries(const at::Tensor& q, int64_t first, int64_t count, const at::Tensor& k, const KeyBand& band)
      : first_(first), count_(count), k_(k), band_(band), groups_(k.size(1)), repeats_(q.size(1) / k.size(1)) {
    const at::Tensor rows = q.narrow(2, first, count);
    rows_ = (adds_wide(q) ? rows : rows.to(k.scalar_type())).reshape({-1, repeats_ * count, q.size(3)});
  }

  // The largest product of these queries with a key to which they attend: [heads]; undefined if they attend to none.
  at::Tensor largest_product() {
    const int64_t begin = std::max<int64_t>(0, first_ + band_.first);
    const int64_t end = std::min(k_.size(2), first_ + count_ + band_.last);
    // Keys to which all of these queries attend.
    const int64_t all_begin = std::max(begin, first_ + count_ - 1 + band_.first);
    const int64_t all_end = std::min(end, first_ + band_.last + 1);
    if (all_begin >= all_end) {
      look_at(begin, end, /*masked=*/true);
    } else {
      look_at(begin, all_begin, true);
      look_at(all_begin, all_end, false);
      look_at(all_end, end, true);
    }
    return largest_;
  }

 private:
  void look_at(int64_t begin, int64_t end, bool masked) {
    for (int64_t key = begin; key < end; key += kKeysAtOnce) {
      const at::Tensor found = largest_of(key, std::min(kKeysAtOnce, end - key), masked);
      largest_ = largest_.defined() ? at::maximum(largest_, found) : found;
    }
  }

  at::Tensor largest_of(int64_t key, int64_t keys, bool masked) const {
    const at::Tensor columns = k_.narrow(2, key, keys).flatten(0, 1).transpose(-1, -2);
    at::Tensor products = adds_wide(rows_) ? at::bmm(rows_, columns, at::kFloat) : at::bmm(rows_, columns);
    products = products.view({-1, groups_, repeats_, count_, keys});
    if (masked) products.masked_fill_(unseen(key, keys), -std::numeric_limits<double>::infinity());
    return products.amax({0, 3, 4}).view({-1});
  }

  at::Tensor unseen(int64_t first_key, int64_t keys) const {
    const auto options = at::TensorOptions(at::kLong).device(rows_.device());
    const at::Tensor query = at::arange(first_, first_ + count_, options).unsqueeze(1);
    const at::Tensor key = at::arange(first_key, first_key + keys, options);
    return key.lt(query + band_.first).logical_or_(key.gt(query + band_.last));
  }

  int64_t first_, count_;
  const at::Tensor& k_;
  const KeyBand& band_;
  int64_t groups_, repeats_;
  at::Tensor rows_;  // [B groups, repeats count, D]
  at::Tensor largest_;
};

}  // namespace

KeyBand causal_band(const ScoreRule& rule, int64_t seq) {
  return {.first = 1 - (rule.has_window(seq) ? rule.window : seq), .last = 0};
}

// Scale and cap are monotonic, so they are applied only to the largest product.
void note_max_logits(const SoftmaxHeads& in, const KeyBand& band, const ScoreRule& rule) {
  if (!is_wanted(rule.max_logits)) return;
  const at::NoGradGuard no_grad;
  const NoCostScope within_the_kernel;
  const ScratchScope tiles;
  const at::ScalarType wide = kernel_wide_type(in.q);
  const double scale = rule.scale.value_or(1.0 / std::sqrt(static_cast<double>(in.q.size(3))));
  const at::Tensor q = in.q.detach(), k = adds_wide(q) ? in.k.detach() : in.k.detach().to(wide);
  const int64_t together = queries_at_once(q, k);
  at::Tensor largest;
  for (int64_t first = 0; first < q.size(2); first += together) {
    const int64_t count = std::min(together, q.size(2) - first);
    const at::Tensor found = Queries(q, first, count, k, band).largest_product();
    if (found.defined()) largest = largest.defined() ? at::maximum(largest, found) : found;
  }
  if (!largest.defined()) return;
  largest = largest * scale;
  raise(rule.max_logits, rule.cap > 0 ? at::tanh(largest / rule.cap) * rule.cap : largest);
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
