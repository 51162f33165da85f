#include "core/model/latent_attention_layer.h"

#include <cmath>
#include <optional>

#include "core/model/attention_split.h"
#include "core/model/head_sinks.h"
#include "core/nn/attention/decode_attention.h"
#include "core/nn/attention/latent_attention.h"
#include "core/nn/attention/max_logit.h"
#include "core/nn/attention/query_temperature.h"
#include "core/nn/rotary_pairs.h"
#include "core/nn/yarn.h"
#include "core/parallel/context/head_exchange.h"
#include "core/parallel/tensor/collectives.h"
#include "core/parallel/tensor/replicated_linear.h"
#include "core/sim/aten.h"
#include "core/spec/layer_specs.h"

namespace ranklab {
namespace {

// query_pre_attn_scalar replaces the head width in the scale; YaRN's factor still applies.
double softmax_scale(const ModelConfig& c) {
  const double usual = yarn_softmax_scale(c.mla.query_head_dim(), c.yarn);
  if (c.query_pre_attn_scalar == 0) return usual;
  return usual * std::sqrt(static_cast<double>(c.mla.query_head_dim()) / c.query_pre_attn_scalar);
}

LatentShape shape_of(const ModelConfig& c, const AttentionContext& context) {
  return {.heads = c.num_attention_heads / context.tp.size(),
          .nope = c.mla.qk_head_dim,
          .rope = c.mla.qk_pos_emb_head_dim,
          .v = c.mla.v_head_dim,
          .softmax_scale = softmax_scale(c),
          .window = context.window,
          .cap = c.attn_logit_softcapping,
          .max_logits = context.max_logits};
}

// The queries, with or without compression.
class Queries {
 public:
  Queries(const ModuleScope& scope, const LatentAttentionSpec& spec, const ModelConfig& c, const TensorParallel& tp)
      : compressed_(spec.q_down.has_value()),
        down_(compressed_ ? std::optional<ReplicatedLinear>(std::in_place, scope, *spec.q_down, tp) : std::nullopt),
        norm_(compressed_ ? std::optional<Norm>(std::in_place, scope, *spec.q_norm, c, tp.sharded_sequence())
                          : std::nullopt),
        up_(scope, spec.q, tp) {}
  at::Tensor operator()(const NormOutput& x, const TokenContext& tokens) const {
    return up_(compressed_ ? (*norm_)((*down_)(x, tokens)) : x, tokens);
  }

 private:
  bool compressed_;
  std::optional<ReplicatedLinear> down_;
  std::optional<Norm> norm_;
  ColumnParallelLinear up_;
};

class LatentAttention : public AttentionLayer {
 public:
  LatentAttention(const ModuleScope& scope, const LatentAttentionSpec& spec, const ModelConfig& c,
                  const AttentionContext& context)
      : path_(scope.path()),
        hooks_(scope.registry().hooks()),
        lora_(c.mla.kv_lora_rank),
        shape_(shape_of(c, context)),
        heads_{path_ + ".scores", shape_.heads, context.tp.rank() * shape_.heads, c.num_attention_heads},
        rope_(context.rope),
        pairs_(c.rotary_interleaved && rope_.defined()),
        chunk_(context.chunk),
        temperature_(context.temperature),
        cp_(context.cp),
        tp_(context.tp),
        recompute_(context.recompute),
        queries_(scope, spec, c, tp_),
        kv_down_(scope, spec.kv_down, tp_),
        kv_norm_(scope, spec.kv_norm, c, tp_.sharded_sequence()),
        kv_up_(scope, spec.kv_up, tp_),
        sinks_(scope, spec.sinks, c, tp_),
        out_(scope, spec.out, tp_) {}

  at::Tensor forward(const NormOutput& x, const ForwardContext& context) const override {
    const at::Tensor q = queries(x, context);
    const Compressed kv = compress(x, context.tokens);
    LatentShape shape = shape_;
    if (!context.tokens.trains) shape.max_logits.reset();
    charge_max_logits(shape.max_logits, q.size(0) * q.size(1));
    const ScoreRule scores = score_rule(shape, sinks_.of_heads());
    const AttentionSplit split = attention_split(context, cp_, scores, rope_, q.size(0), heads_, chunk_);
    if (split.keys.active() && !split.heads.active())
      return out_(attend_to_latents(q, kv, split, context), context.tokens);
    const LatentInput input{q, kv_up_(kv.latent, context.tokens), for_all_heads(kv.k_rope)};
    if (split.can_be_watched())
      hooks_.show_heads(path_, scores,
                        [&] { return watched_heads(latent_heads(input, shape_, split.rope), split.chunk); });
    if (split.heads.active() || split.in_blocks()) return out_(attend(input, split), context.tokens);
    return recompute_ ? out_(recomputable_latent_attention(input, shape, split.rope, scores.sinks), context.tokens)
                      : out_(latent_attention(input, shape, split.rope, scores.sinks), context.tokens);
  }

  AttentionCache make_cache(int64_t sequences, int64_t capacity, const at::TensorOptions& options) const override {
    AttentionCache cache;
    cache.keys = at::empty({sequences, 1, capacity, lora_ + shape_.rope}, options);
    cache.chunk = chunk_ < capacity ? chunk_ : 0;
    return cache;
  }
  at::Tensor decode(const NormOutput& x, const ForwardContext& context, AttentionCache& cache) const override {
    const at::Tensor q = queries(x, context);
    const Compressed kv = compress(x, context.tokens);
    const LatentQuery query{q, kv.latent.normed, kv.k_rope, kv_up_.weight().data, kv_up_.bias()};
    return out_(decode_latent_attention(query, shape_, rope_, cache, sinks_.of_heads()), context.tokens);
  }

 private:
  at::Tensor attend(const LatentInput& in, const AttentionSplit& split) const {
    const LatentInput own{heads_of_all_positions(in.q, split.heads), heads_of_all_positions(in.kv, split.heads),
                          gather_positions(in.k_rope, split.heads)};
    LatentShape shape = shape_;
    shape.heads =
        shape_of_one_rank({.heads = shape_.heads, .groups = shape_.heads, .head_dim = shape_.v}, split.heads).heads;
    shape.max_logits = split.rule.scores.max_logits;
    const at::Tensor& sinks = split.rule.scores.sinks;
    const at::Tensor out = split.in_blocks() ? attend_in_blocks(own, shape, split)
                           : recompute_ ? recomputable_latent_attention(own, shape, split.rope, sinks).for_no_product()
                                        : latent_attention(own, shape, split.rope, sinks);
    return positions_of_all_heads(out, split.heads);
  }

  at::Tensor queries(const NormOutput& x, const ForwardContext& context) const {
    at::Tensor q = queries_(x, context.tokens);
    if (pairs_) q = halves_of_pairs(q, shape_.heads, {shape_.nope + shape_.rope, shape_.nope, shape_.rope});
    if (!temperature_.defined()) return q;
    return with_temperature(q, q.size(-1), temperature_, row_positions(context, q.size(0), q.device()));
  }

  struct Compressed {
    NormOutput latent;
    at::Tensor k_rope;  // of this rank's positions
  };
  Compressed compress(const NormOutput& x, const TokenContext& tokens) const {
    const auto parts = kv_down_(x, tokens).split_with_sizes({lora_, shape_.rope}, -1);
    const at::Tensor k_rope = parts[1].contiguous();
    return {kv_norm_(parts[0].contiguous()),
            pairs_ ? halves_of_pairs(k_rope, 1, {.head = shape_.rope, .rotary = shape_.rope}) : k_rope};
  }

  at::Tensor attend_in_blocks(const LatentInput& in, const LatentShape& shape, const AttentionSplit& split) const {
    return without_padding(context_attention(latent_heads(in, shape, split.rope), split.rule, split.keys, recompute_),
                           shape);
  }

  // Ranks exchange the latents, and each rank computes keys and values from them. This costs cp times the projection,
  // but the message does not grow with the number of heads (DeepSeek-V3: 576 numbers per position instead of 32,832).
  at::Tensor attend_to_latents(const at::Tensor& q, const Compressed& kv, const AttentionSplit& split,
                               const ForwardContext& context) const {
    const KeyMaker maker{[this, tokens = context.tokens, part = context.part](const KeyValue& latent, int rank) {
                           TokenContext of_rank = tokens;
                           of_rank.positions = part->of_ranks.at(static_cast<size_t>(rank));
                           const at::Tensor up = kv_up_({latent.k, latent.k}, of_rank);
                           const LatentKeys keys = latent_keys(up, latent.v, shape_);
                           return KeyValue{keys.k, keys.v};
                         },
                         kv_up_.trained()};
    const at::Tensor k_rope = rotated_keys(for_all_heads(kv.k_rope), split.rope);
    const SoftmaxHeads travels{latent_queries(q, shape_, split.rope), kv.latent.normed, k_rope};
    return without_padding(context_attention(travels, split.rule, split.keys, recompute_, maker), shape_);
  }

  static at::Tensor without_padding(const at::Tensor& out, const LatentShape& shape) {
    const int64_t seq = out.size(0), batch = out.size(1);
    return out.view({seq, batch, shape.heads, -1}).narrow(-1, 0, shape.v).reshape({seq, batch, -1});
  }

  // The part of the key that all heads share; backward sums its gradient over tp, since each rank has only its own
  // heads.
  at::Tensor for_all_heads(const at::Tensor& k_rope) const {
    return tp_.sharded_sequence() ? gather_from_sp(k_rope, *tp_.comm) : copy_to_tp(k_rope, *tp_.comm);
  }

  std::string path_;
  const ModuleHooks& hooks_;
  int64_t lora_;
  LatentShape shape_;
  AttentionHeads heads_;
  RopeTable rope_;
  bool pairs_;  // whether adjacent elements, instead of halves, are rotated together
  int64_t chunk_;
  at::Tensor temperature_;
  ContextParallel cp_;
  TensorParallel tp_;
  bool recompute_;
  Queries queries_;
  ReplicatedLinear kv_down_;
  Norm kv_norm_;
  ColumnParallelLinear kv_up_;
  HeadSinks sinks_;
  RowParallelLinear out_;
};

}  // namespace

std::unique_ptr<AttentionLayer> make_latent_attention(const ModuleScope& scope, const ModelConfig& config,
                                                      const AttentionContext& context) {
  return std::make_unique<LatentAttention>(scope, latent_attention_spec(config), config, context);
}

}  // namespace ranklab
