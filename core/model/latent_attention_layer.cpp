#include "core/model/latent_attention_layer.h"

#include <optional>

#include "core/nn/decode_attention.h"
#include "core/nn/latent_attention.h"
#include "core/nn/yarn.h"
#include "core/parallel/collectives.h"
#include "core/parallel/replicated_linear.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

LatentShape shape_of(const ModelConfig& c, int tp) {
  return {.heads = c.num_attention_heads / tp,
          .nope = c.mla.qk_head_dim,
          .rope = c.mla.qk_pos_emb_head_dim,
          .v = c.mla.v_head_dim,
          .softmax_scale = yarn_softmax_scale(c.mla.query_head_dim(), c.yarn)};
}

Init normal(const ModelConfig& c) { return {InitKind::kNormal, c.init_std}; }

ColumnParallelLinear by_heads(ParameterRegistry& registry, const std::string& name, const ModelConfig& c, int64_t in,
                              int64_t width, const TensorParallel& tp) {
  const int64_t out = c.num_attention_heads * width;
  return {registry, name, {in, out}, {out}, normal(c), false, tp};
}

// The queries, with or without compression.
class Queries {
 public:
  Queries(ParameterRegistry& registry, const std::string& name, const ModelConfig& c, const TensorParallel& tp) {
    const int64_t lora = c.mla.q_lora_rank, head = c.mla.query_head_dim();
    if (lora == 0) {
      up_.emplace(by_heads(registry, name + ".q", c, c.hidden_size, head, tp));
      return;
    }
    down_.emplace(registry, name + ".q_down", LinearSize{c.hidden_size, lora}, normal(c), tp);
    norm_.emplace(registry, name + ".q_norm", c, lora, tp.sharded_sequence());
    up_.emplace(by_heads(registry, name + ".q_up", c, lora, head, tp));
  }
  at::Tensor operator()(const NormOutput& x, const TokenPlace& tokens) const {
    return (*up_)(down_ ? (*norm_)((*down_)(x, tokens)) : x, tokens);
  }

 private:
  std::optional<ReplicatedLinear> down_;
  std::optional<Norm> norm_;
  std::optional<ColumnParallelLinear> up_;
};

class LatentAttention : public AttentionLayer {
 public:
  LatentAttention(ParameterRegistry& registry, const std::string& name, const ModelConfig& c,
                  const AttentionPlace& place)
      : lora_(c.mla.kv_lora_rank),
        shape_(shape_of(c, place.tp.size())),
        rope_(place.rope),
        tp_(place.tp),
        again_(place.again),
        queries_(registry, name, c, tp_),
        kv_down_(registry, name + ".kv_down", {c.hidden_size, lora_ + shape_.rope}, normal(c), tp_),
        kv_norm_(registry, name + ".kv_norm", c, lora_, tp_.sharded_sequence()),
        kv_up_(by_heads(registry, name + ".kv_up", c, lora_, shape_.nope + shape_.v, tp_)),
        out_(registry, name + ".out", {c.num_attention_heads * shape_.v, c.hidden_size}, residual_init(c), false, tp_) {
  }

  at::Tensor forward(const NormOutput& x, const ForwardContext& context) const override {
    const at::Tensor q = queries_(x, context.tokens);
    const Compressed kv = compress(x, context.tokens);
    const LatentInput input{q, kv_up_(kv.latent, context.tokens), for_all_heads(kv.k_rope)};
    const RopeTable rope = rope_for(rope_, q.size(0));
    return again_ ? out_(latent_attention_again(input, shape_, rope), context.tokens)
                  : out_(latent_attention(input, shape_, rope), context.tokens);
  }

  AttentionCache make_cache(int64_t sequences, int64_t capacity, const at::TensorOptions& options) const override {
    return {at::empty({sequences, 1, capacity, lora_ + shape_.rope}, options), {}, 0};
  }
  at::Tensor decode(const NormOutput& x, const ForwardContext& context, AttentionCache& cache) const override {
    const at::Tensor q = queries_(x, context.tokens);
    const Compressed kv = compress(x, context.tokens);
    return out_(decode_latent_attention({q, kv.latent.normed, kv.k_rope, kv_up_.weight().data}, shape_, rope_, cache),
                context.tokens);
  }

 private:
  struct Compressed {
    NormOutput latent;
    at::Tensor k_rope;  // of this rank's positions
  };
  Compressed compress(const NormOutput& x, const TokenPlace& tokens) const {
    const auto parts = kv_down_(x, tokens).split_with_sizes({lora_, shape_.rope}, -1);
    return {kv_norm_(parts[0].contiguous()), parts[1].contiguous()};
  }

  // Each rank's heads give a part of its gradient.
  at::Tensor for_all_heads(const at::Tensor& k_rope) const {
    return tp_.sharded_sequence() ? gather_from_sp(k_rope, *tp_.comm) : copy_to_tp(k_rope, *tp_.comm);
  }

  int64_t lora_;
  LatentShape shape_;
  RopeTable rope_;
  TensorParallel tp_;
  bool again_;
  Queries queries_;
  ReplicatedLinear kv_down_;
  Norm kv_norm_;
  ColumnParallelLinear kv_up_;
  RowParallelLinear out_;
};

}  // namespace

std::unique_ptr<AttentionLayer> make_latent_attention(ParameterRegistry& registry, const std::string& name,
                                                      const ModelConfig& config, const AttentionPlace& place) {
  return std::make_unique<LatentAttention>(registry, name, config, place);
}

}  // namespace ranklab
