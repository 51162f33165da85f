#include "core/runtime/sentinels/attention_probe.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/runtime/sentinels/parameter_keys.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

constexpr int64_t kProbedQueries = 32;

}  // namespace

void AttentionProbe::attention_heads(const std::string& path, const at::Tensor& q_BHSD, const at::Tensor& k_BGSD,
                                     const ScoreRule& rule) {
  const int64_t layer = layer_of_key(path);
  if (layer < 0) return;
  const NoCostScope free;
  const at::NoGradGuard no_grad;
  const int64_t length = q_BHSD.size(2), repeats = q_BHSD.size(1) / k_BGSD.size(1);
  // Late queries attend to the most keys, so positions are sampled at even distances, including the last; the first
  // query has only one key.
  const int64_t count = std::min(kProbedQueries, length - 1);
  if (count < 1) return;
  const at::Tensor index = at::arange(1, count + 1, at::kLong).mul(length - 1).div(count, "floor").to(q_BHSD.device());
  const at::Tensor q = q_BHSD.index_select(2, index).to(at::kDouble);
  const at::Tensor k = k_BGSD.to(at::kDouble).repeat_interleave(repeats, 1);
  const double scale = rule.scale.value_or(1 / std::sqrt(static_cast<double>(q_BHSD.size(3))));
  at::Tensor scores = at::matmul(q, k.transpose(2, 3)) * scale;  // [B, H, count, S]
  if (rule.cap > 0) scores = at::tanh(scores / rule.cap) * rule.cap;
  const at::Tensor key = at::arange(length, index.options()).unsqueeze(0), query = index.unsqueeze(1);
  at::Tensor hidden = key.gt(query);
  if (rule.has_window(length)) hidden = at::logical_or(hidden, key.le(query - rule.window));
  scores = scores.masked_fill(hidden, -std::numeric_limits<double>::infinity());
  const at::Tensor p = at::softmax(scores, -1);                         // without sinks
  const at::Tensor entropy = -(p * p.clamp_min(1e-300).log()).sum(-1);  // [B, H, count]
  const at::Tensor visible = hidden.logical_not().sum(-1).to(at::kDouble);
  Seen& seen = seen_[layer];
  const double largest = scores.max().item<double>();
  seen.largest = seen.queries == 0 ? largest : std::max(seen.largest, largest);
  seen.entropy += entropy.sum().item<double>();
  seen.share += (entropy / visible.log().clamp_min(1e-12)).sum().item<double>();
  seen.queries += static_cast<double>(entropy.numel());
  if (!rule.sinks.defined()) return;
  const at::Tensor over_keys = at::logsumexp(scores, {-1}), sink = rule.sinks.to(at::kDouble).view({1, -1, 1});
  seen.sink += at::sigmoid(sink - over_keys).sum().item<double>();
}

}  // namespace ranklab
