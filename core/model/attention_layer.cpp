#include "core/model/attention_layer.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/model/latent_attention_layer.h"
#include "core/nn/attention.h"
#include "core/nn/decode_attention.h"
#include "core/nn/head_norm.h"
#include "core/parallel/projection_norm.h"
#include "core/parallel/shared_heads.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

std::vector<int64_t> qkv_segments(const ModelConfig& c) { return {c.query_width(), c.kv_width(), c.kv_width()}; }

std::optional<HeadNorm> make_head_norm(ParameterRegistry& registry, const std::string& name, const ModelConfig& c,
                                       const TensorParallel& tp) {
  if (!c.qk_norm || c.qk_norm_width != QkNormWidth::kHead) return std::nullopt;
  return HeadNorm(registry, name, c, tp.active());
}

std::optional<ProjectionNorm> make_projection_norm(ParameterRegistry& registry, const std::string& name,
                                                   const ModelConfig& c, const TensorParallel& tp) {
  if (!c.qk_norm || c.qk_norm_width != QkNormWidth::kAllHeads) return std::nullopt;
  return ProjectionNorm(registry, name, c, tp);
}

class GroupedQueryAttention : public AttentionLayer {
 public:
  GroupedQueryAttention(ParameterRegistry& registry, const std::string& name, const ModelConfig& c,
                        const AttentionPlace& place)
      : shape_{c.num_attention_heads / place.tp.size(),
               std::max<int64_t>(c.query_groups() / place.tp.size(), 1),
               c.head_dim(),
               place.window,
               c.query_pre_attn_scalar > 0 ? 1.0 / std::sqrt(c.query_pre_attn_scalar) : 0.0,
               c.attn_logit_softcapping},
        rope_(place.rope),
        kv_(place.kv),
        again_(place.again),
        qkv_(registry, name + ".qkv", {c.hidden_size, c.qkv_width()}, qkv_segments(c), {InitKind::kNormal, c.init_std},
             c.has_qkv_bias(), place.tp),
        head_norm_(make_head_norm(registry, name, c, place.tp)),
        projection_norm_(make_projection_norm(registry, name, c, place.tp)),
        out_(registry, name + ".out", {c.query_width(), c.hidden_size}, residual_init(c), c.has_attention_out_bias(),
             place.tp) {}

  at::Tensor forward(const NormOutput& x, const ForwardContext& context) const override {
    const at::Tensor qkv = project(x, context);
    const RopeTable rope = rope_for(rope_, qkv.size(0));
    return again_ ? out_(causal_attention_again(qkv, shape_, rope), context.tokens)
                  : out_(causal_attention(qkv, shape_, rope), context.tokens);
  }

  AttentionCache make_cache(int64_t sequences, int64_t capacity, const at::TensorOptions& options) const override {
    const int64_t window = shape_.has_window(capacity) ? shape_.window : 0;
    const int64_t kept = window > 0 ? window - 1 : capacity;
    const auto room = [&] { return at::empty({sequences, shape_.groups, kept, shape_.head_dim}, options); };
    return {room(), room(), 0, window};
  }
  at::Tensor decode(const NormOutput& x, const ForwardContext& context, AttentionCache& cache) const override {
    return out_(decode_attention(project(x, context), shape_, rope_, cache), context.tokens);
  }

 private:
  at::Tensor project(const NormOutput& x, const ForwardContext& context) const {
    at::Tensor qkv = qkv_(x, context.tokens);
    if (projection_norm_) qkv = (*projection_norm_)(qkv);
    if (kv_ != nullptr) qkv = gather_key_values(qkv, shape_.heads * shape_.head_dim, *kv_);
    return head_norm_ ? (*head_norm_)(qkv, shape_) : qkv;
  }

  AttentionShape shape_;
  RopeTable rope_;
  Communicator* kv_;
  bool again_;
  ColumnParallelLinear qkv_;
  std::optional<HeadNorm> head_norm_;
  std::optional<ProjectionNorm> projection_norm_;
  RowParallelLinear out_;
};

}  // namespace

Init residual_init(const ModelConfig& c) {
  return {InitKind::kNormal, c.init_std / std::sqrt(2.0 * static_cast<double>(c.num_layers))};
}

std::unique_ptr<AttentionLayer> make_attention_layer(ParameterRegistry& registry, const std::string& name,
                                                     const ModelConfig& config, const AttentionPlace& place) {
  if (config.mla.enabled()) return make_latent_attention(registry, name, config, place);
  return std::make_unique<GroupedQueryAttention>(registry, name, config, place);
}

}  // namespace ranklab
