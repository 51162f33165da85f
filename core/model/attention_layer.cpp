#include "core/model/attention_layer.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/model/attention_split.h"
#include "core/model/head_sinks.h"
#include "core/model/latent_attention_layer.h"
#include "core/model/recurrent/delta_net_layer.h"
#include "core/model/recurrent/mamba_layer.h"
#include "core/nn/attention/attention.h"
#include "core/nn/attention/decode_attention.h"
#include "core/nn/attention/max_logit.h"
#include "core/nn/attention/query_temperature.h"
#include "core/nn/head_norm.h"
#include "core/nn/output_gate.h"
#include "core/nn/rotary_pairs.h"
#include "core/parallel/context/head_exchange.h"
#include "core/parallel/tensor/projection_norm.h"
#include "core/parallel/tensor/shared_heads.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

// QK-norm is either per head (HeadNorm) or over all heads together (ProjectionNorm).
std::optional<HeadNorm> make_head_norm(const ModuleScope& scope, const AttentionSpec& spec, const ModelConfig& c,
                                       const TensorParallel& tp) {
  if (!spec.q_norm || !spec.q_norm->by_heads) return std::nullopt;
  return HeadNorm(scope, spec, c, tp.active());
}

std::optional<ProjectionNorm> make_projection_norm(const ModuleScope& scope, const AttentionSpec& spec,
                                                   const ModelConfig& c, const TensorParallel& tp) {
  if (!spec.q_norm || spec.q_norm->by_heads) return std::nullopt;
  return ProjectionNorm(scope, spec, c, tp);
}

std::optional<HeadNorm> make_l2_norm(const ModuleScope& scope, const ModelConfig& c, const AttentionContext& context) {
  if (!context.l2_norm) return std::nullopt;
  return HeadNorm(c, at::TensorOptions(scope.registry().dtype()).device(scope.registry().device()));
}

class GroupedQueryAttention : public AttentionLayer {
 public:
  GroupedQueryAttention(const ModuleScope& scope, const AttentionSpec& spec, const ModelConfig& c,
                        const AttentionContext& context)
      : path_(scope.path()),
        hooks_(scope.registry().hooks()),
        shape_{c.num_attention_heads / context.tp.size(),
               std::max<int64_t>(c.query_groups() / context.tp.size(), 1),
               c.head_dim(),
               context.window,
               c.query_pre_attn_scalar > 0 ? 1.0 / std::sqrt(c.query_pre_attn_scalar) : 0.0,
               c.attn_logit_softcapping,
               context.max_logits},
        heads_{path_ + ".scores", shape_.heads, context.tp.rank() * shape_.heads, c.num_attention_heads},
        rope_(context.rope),
        pairs_(c.rotary_interleaved && rope_.defined()
                   ? std::optional(RotaryPairs{.head = c.head_dim(), .rotary = c.rotary_width()})
                   : std::nullopt),
        chunk_(context.chunk),
        temperature_(context.temperature),
        cp_(context.cp),
        kv_(context.kv),
        recompute_(context.recompute),
        qkv_(scope, spec.qkv, context.tp),
        gate_width_(c.output_gate_width() / context.tp.size()),
        head_norm_(make_head_norm(scope, spec, c, context.tp)),
        l2_norm_(make_l2_norm(scope, c, context)),
        projection_norm_(make_projection_norm(scope, spec, c, context.tp)),
        sinks_(scope, spec.sinks, c, context.tp),
        out_(scope, spec.out, context.tp) {}

  at::Tensor forward(const NormOutput& x, const ForwardContext& context) const override {
    const auto [qkv, gate] = project(x, context);
    AttentionShape shape = shape_;
    if (!context.tokens.trains) shape.max_logits.reset();
    charge_max_logits(shape.max_logits, qkv.size(0) * qkv.size(1));
    const ScoreRule scores = score_rule(shape, sinks_.of_heads());
    const AttentionSplit split = attention_split(context, cp_, scores, rope_, qkv.size(0), heads_, chunk_);
    if (split.can_be_watched())
      hooks_.show_heads(path_, scores,
                        [&] { return watched_heads(rotated_heads(qkv, shape_, split.rope), split.chunk); });
    if (split.heads.active() || split.in_blocks()) return projected_out({attend(qkv, split)}, gate, context);
    return projected_out(recompute_ ? recomputable_causal_attention(qkv, shape, split.rope, scores.sinks)
                                    : RecomputableOutput{causal_attention(qkv, shape, split.rope, scores.sinks)},
                         gate, context);
  }

  AttentionCache make_cache(int64_t sequences, int64_t capacity, const at::TensorOptions& options) const override {
    const int64_t chunk = chunk_ < capacity ? chunk_ : 0;
    int64_t window = shape_.has_window(capacity) ? shape_.window : 0;
    if (chunk > 0) window = window > 0 ? std::min(window, chunk) : chunk;
    const int64_t kept = window > 0 ? window - 1 : capacity;
    const auto room = [&] { return at::empty({sequences, shape_.groups, kept, shape_.head_dim}, options); };
    return {room(), room(), 0, window, chunk};
  }
  at::Tensor decode(const NormOutput& x, const ForwardContext& context, AttentionCache& cache) const override {
    const auto [qkv, gate] = project(x, context);
    return projected_out({decode_attention(qkv, shape_, rope_, cache, sinks_.of_heads())}, gate, context);
  }

 private:
  struct Projected {
    at::Tensor qkv;
    at::Tensor gate;  // gate of the output; undefined without one
  };

  at::Tensor attend(const at::Tensor& qkv, const AttentionSplit& split) const {
    const at::Tensor own = exchange_qkv(qkv, shape_, split.heads);
    AttentionShape shape = shape_of_one_rank(shape_, split.heads);
    shape.max_logits = split.rule.scores.max_logits;
    const at::Tensor& sinks = split.rule.scores.sinks;
    const at::Tensor out =
        split.in_blocks() ? context_attention(rotated_heads(own, shape, split.rope), split.rule, split.keys, recompute_)
        : recompute_      ? recomputable_causal_attention(own, shape, split.rope, sinks).for_no_product()
                          : causal_attention(own, shape, split.rope, sinks);
    return positions_of_all_heads(out, split.heads);
  }

  Projected project(const NormOutput& x, const ForwardContext& context) const {
    at::Tensor qkv = qkv_(x, context.tokens);
    if (gate_width_ == 0) return {rotatable(qkv, context), {}};
    const int64_t queries = shape_.heads * shape_.head_dim;
    const auto parts = qkv.split_with_sizes({queries, gate_width_, qkv.size(-1) - queries - gate_width_}, -1);
    return {rotatable(at::cat({parts[0], parts[2]}, -1), context), parts[1]};
  }

  // Queries, keys and values in the form that attention takes.
  at::Tensor rotatable(at::Tensor qkv, const ForwardContext& context) const {
    if (projection_norm_) qkv = (*projection_norm_)(qkv);
    if (kv_ != nullptr) qkv = gather_key_values(qkv, shape_.heads * shape_.head_dim, *kv_);
    if (head_norm_) qkv = (*head_norm_)(qkv, shape_);
    if (l2_norm_) qkv = (*l2_norm_)(qkv, shape_);
    if (pairs_) qkv = halves_of_pairs(qkv, shape_.heads + shape_.groups, *pairs_);
    if (!temperature_.defined()) return qkv;
    return with_temperature(qkv, shape_.heads * shape_.head_dim, temperature_,
                            row_positions(context, qkv.size(0), qkv.device()));
  }

  at::Tensor projected_out(const RecomputableOutput& heads, const at::Tensor& gate,
                           const ForwardContext& context) const {
    return out_(gate.defined() ? sigmoid_gated(heads.for_no_product(), gate) : heads, context.tokens);
  }

  std::string path_;
  const ModuleHooks& hooks_;
  AttentionShape shape_;
  AttentionHeads heads_;
  RopeTable rope_;
  std::optional<RotaryPairs> pairs_;  // unset: halves are rotated, as attention does
  int64_t chunk_;
  at::Tensor temperature_;
  ContextParallel cp_;
  Communicator* kv_;
  bool recompute_;
  ColumnParallelLinear qkv_;
  int64_t gate_width_;  // of this rank's output gate; 0: none
  std::optional<HeadNorm> head_norm_, l2_norm_;
  std::optional<ProjectionNorm> projection_norm_;
  HeadSinks sinks_;
  RowParallelLinear out_;
};

}  // namespace

std::unique_ptr<AttentionLayer> make_attention_layer(const ModuleScope& scope, const ModelConfig& config,
                                                     const AttentionContext& context) {
  if (context.linear) return make_delta_net(scope, config, context);
  if (context.mamba) return make_mamba(scope, config, context);
  if (config.mla.enabled()) return make_latent_attention(scope, config, context);
  return std::make_unique<GroupedQueryAttention>(scope, attention_spec(config), config, context);
}

}  // namespace ranklab
