#include "core/nn/attention/decode_attention.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/nn/activation.h"
#include "core/nn/attention/attention_sinks.h"
#include "core/nn/attention/softmax_attention.h"
#include "core/nn/attention/window_attention.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

void check_room(const AttentionCache& cache, int64_t positions) {
  if (cache.window > 0) return;
  RANKLAB_CHECK(cache.positions + positions <= cache.capacity(), ErrorKind::kInvalidArgument, .where = "decoding",
                .what = "the cache is full",
                .got = strprintf("%lld positions after %lld", static_cast<long long>(positions),
                                 static_cast<long long>(cache.positions)),
                .want = strprintf("at most %lld in all", static_cast<long long>(cache.capacity())),
                .fix = "begin a new cache with the last tokens");
}

// If the angles depend on the sequence length, a cached key keeps the angles for the length at which it was added, as
// in transformers.
RopeTable from_position(const RopeTable& rope, int64_t first, int64_t count) {
  if (!rope.defined()) return {};
  return {rope.cos_SD.narrow(0, first, count), rope.sin_SD.narrow(0, first, count)};
}

// S new positions from `first` on. The last S keys are their own, and `before` keys of the positions just before them
// precede these.
struct NewPositions {
  int64_t first = 0, before = 0, window = 0, chunk = 0;  // as in AttentionCache

  // [S, before + S]: true where a position attends to a key; undefined: everywhere.
  at::Tensor seen(int64_t keys, c10::Device device) const {
    const int64_t seq = keys - before, first_key = first - before;
    at::Tensor seen;
    if (seq > 1 || (window > 0 && window < keys))
      seen = window_mask(before, seq, 0, keys, window == 0 ? keys : window, device);
    if (chunk == 0 || first_key / chunk == (first + seq - 1) / chunk) return seen;
    const auto options = at::TensorOptions(at::kLong).device(device);
    const auto chunk_of = [&](int64_t begin, int64_t count) {
      return at::arange(begin, begin + count, options).floor_divide(chunk);
    };
    const at::Tensor together = chunk_of(first, seq).unsqueeze(1).eq(chunk_of(first_key, keys));
    return seen.defined() ? seen.logical_and(together) : together;
  }
};

// The probabilities [B, groups, n S, before + S] with which grouped queries q [B, groups, n S, D] (S new positions of n
// heads) attend to keys. `with_bias` [B, groups, n S, 1]: the product of each query with the bias that all keys share;
// undefined: no bias.
at::Tensor probabilities(const at::Tensor& q, const at::Tensor& keys, const NewPositions& fresh, const ScoreRule& rule,
                         const at::Tensor& with_bias = {}) {
  at::Tensor scores = at::matmul(q, keys.transpose(-1, -2));
  if (with_bias.defined()) scores += with_bias;
  scores.mul_(rule.scale.value());
  if (rule.cap > 0) scores = soft_capped(scores, rule.cap);
  const int64_t total = keys.size(2), seq = total - fresh.before;
  if (const at::Tensor seen = fresh.seen(total, q.device()); seen.defined())
    scores.view({q.size(0), q.size(1), -1, seq, total})
        .masked_fill_(seen.logical_not(), -std::numeric_limits<double>::infinity());
  const int64_t heads = q.size(1) * q.size(2) / seq;
  return softmax_with_sinks(scores.view({q.size(0), heads, seq, total}), rule.sinks).reshape(scores.sizes());
}

// For positions without a past: calls attend(begin, count) for each chunk and concatenates the results, or calls it
// once for all positions.
template <typename Attend>
at::Tensor in_chunks(int64_t positions, int64_t chunk, const Attend& attend) {
  if (chunk == 0 || positions <= chunk) return attend(0, positions);
  std::vector<at::Tensor> out;
  for (int64_t begin = 0; begin < positions; begin += chunk)
    out.push_back(attend(begin, std::min(chunk, positions - begin)));
  return at::cat(out);
}

// Copies the last `keep` positions of [B, groups, S, D] into a cache.
void keep_last(at::Tensor& kept, const at::Tensor& all, int64_t keep) {
  kept.narrow(2, 0, keep).copy_(all.narrow(2, all.size(2) - keep, keep));
}

// RETURNS: the keys and values to which the new positions may attend, with their own at the end. Updates the cache.
std::pair<at::Tensor, at::Tensor> see(const at::Tensor& keys, const at::Tensor& values, AttentionCache& cache) {
  const int64_t seq = keys.size(2), past = cache.positions;
  cache.positions += seq;
  if (cache.window == 0) {
    cache.keys.narrow(2, past, seq).copy_(keys);
    cache.values.narrow(2, past, seq).copy_(values);
    return {cache.keys.narrow(2, 0, past + seq), cache.values.narrow(2, 0, past + seq)};
  }
  const auto behind_kept = [&](const at::Tensor& kept, const at::Tensor& fresh) {
    return at::cat({kept.narrow(2, 0, std::min(past, cache.window - 1)), fresh}, 2);
  };
  const std::pair seen{behind_kept(cache.keys, keys), behind_kept(cache.values, values)};
  const int64_t keep = std::min(past + seq, cache.window - 1);
  keep_last(cache.keys, seen.first, keep);
  keep_last(cache.values, seen.second, keep);
  return seen;
}

}  // namespace

at::Tensor decode_attention(const at::Tensor& qkv, const AttentionShape& s, const RopeTable& rope,
                            AttentionCache& cache, const at::Tensor& sinks) {
  const int64_t seq = qkv.size(0), batch = qkv.size(1), past = cache.positions;
  check_room(cache, seq);
  const at::Tensor heads = qkv.view({seq, batch, s.heads + 2 * s.groups, s.head_dim}).permute({1, 2, 0, 3});
  const auto parts = heads.split_with_sizes({s.heads, s.groups, s.groups}, 1);
  const RopeTable all = rope_for(rope, past + seq), here = from_position(all, past, seq);
  const auto [keys, values] = see(apply_rope(parts[1], here), parts[2], cache);
  if (past == 0)
    return in_chunks(seq, cache.chunk, [&](int64_t begin, int64_t count) {
      return causal_attention(qkv.narrow(0, begin, count), s, from_position(all, begin, count), sinks);
    });
  const at::Tensor q = apply_rope(parts[0], here).reshape({batch, s.groups, s.heads / s.groups * seq, s.head_dim});
  const ScoreRule rule{.scale = s.score_scale(), .cap = s.cap, .sinks = sinks};
  const NewPositions fresh{past, keys.size(2) - seq, cache.window, cache.chunk};
  const at::Tensor out = at::matmul(probabilities(q, keys, fresh, rule), values);
  return by_position(out.reshape({batch, s.heads, seq, s.head_dim}));
}

at::Tensor decode_latent_attention(const LatentQuery& in, const LatentShape& s, const RopeTable& rope,
                                   AttentionCache& cache, const at::Tensor& sinks) {
  const int64_t seq = in.q.size(0), batch = in.q.size(1), past = cache.positions, lora = in.compressed.size(2);
  check_room(cache, seq);
  const RopeTable all = rope_for(rope, past + seq), here = from_position(all, past, seq);
  const at::Tensor fresh = cache.keys.narrow(2, past, seq);  // [B, 1, S, lora + rope]
  fresh.narrow(-1, 0, lora).copy_(in.compressed.transpose(0, 1).unsqueeze(1));
  fresh.narrow(-1, lora, s.rope).copy_(apply_rope(in.k_rope.transpose(0, 1).unsqueeze(1), here));
  cache.positions += seq;
  const at::Tensor& bias = in.kv_up_bias;
  if (past == 0) {
    const at::Tensor product = at::linear(in.compressed, in.kv_up), kv = bias.defined() ? product + bias : product;
    return in_chunks(seq, cache.chunk, [&](int64_t begin, int64_t count) {
      const auto of_chunk = [&](const at::Tensor& x) { return x.narrow(0, begin, count); };
      return latent_attention({of_chunk(in.q), of_chunk(kv), of_chunk(in.k_rope)}, s, from_position(all, begin, count),
                              sinks);
    });
  }

  const at::Tensor q = in.q.view({seq, batch, s.heads, s.query_head()}).permute({1, 2, 0, 3});  // [B, heads, S, D]
  const at::Tensor up = in.kv_up.view({s.heads, s.nope + s.v, lora});
  const at::Tensor q_lora = at::matmul(q.narrow(-1, 0, s.nope), up.narrow(1, 0, s.nope));  // [B, heads, S, lora]
  const at::Tensor queries = at::cat({q_lora, apply_rope(q.narrow(-1, s.nope, s.rope), here)}, -1);
  at::Tensor bias_scores, bias_values;  // the key bias times each query; the value bias of each head
  if (bias.defined()) {
    const at::Tensor by_head = bias.view({s.heads, s.nope + s.v, 1});
    bias_scores = at::matmul(q.narrow(-1, 0, s.nope), by_head.narrow(1, 0, s.nope)).view({batch, 1, s.heads * seq, 1});
    bias_values = by_head.narrow(1, s.nope, s.v).view({s.heads, 1, s.v});
  }
  // the first position to which a query attends
  int64_t first = s.window > 0 ? std::max<int64_t>(0, past - (s.window - 1)) : 0;
  if (cache.chunk > 0) first = std::max(first, past - past % cache.chunk);
  const at::Tensor keys = cache.keys.narrow(2, first, past + seq - first);
  const NewPositions positions{past, past - first, s.window, cache.chunk};
  const at::Tensor p = probabilities(queries.view({batch, 1, s.heads * seq, lora + s.rope}), keys, positions,
                                     score_rule(s, sinks), bias_scores);
  const at::Tensor mixed = at::matmul(p, keys.narrow(-1, 0, lora));
  const at::Tensor weights = up.narrow(1, s.nope, s.v).transpose(-1, -2);  // [heads, lora, v]
  const at::Tensor values = at::matmul(mixed.view({batch, s.heads, seq, lora}), weights);
  if (!bias.defined()) return by_position(values);
  // The value bias counts with the sum of the probabilities, which is less than 1 beside a sink.
  return by_position(values + p.sum(-1, true).view({batch, s.heads, seq, 1}) * bias_values);
}

}  // namespace ranklab
