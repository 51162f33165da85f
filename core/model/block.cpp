#include "core/model/block.h"

#include "core/base/error.h"
#include "core/model/moe_layer.h"

namespace ranklab {
namespace {

std::unique_ptr<MlpLayer> make_mlp(ParameterRegistry& registry, const ModelConfig& c, const BlockPlace& place) {
  const std::string name = place.name + ".mlp";
  if (!c.is_moe_layer(place.layer)) return make_dense_mlp(registry, name, c, c.ffn_hidden_size, place.tp);
  RANKLAB_CHECK(place.moe != nullptr, ErrorKind::kInternal, .where = place.name,
                .what = "a layer with experts needs a place for them");
  return make_moe_layer(registry, name, c, place.layer, *place.moe, place.tp);
}

AttentionPlace attention_place(const ModelConfig& c, const BlockPlace& place) {
  const int64_t window = c.window_of_layer(place.layer);
  return {.rope = window > 0 ? place.local_rope : place.rope,
          .tp = place.tp,
          .kv = place.kv,
          .window = window,
          .again = place.attention_again};
}

}  // namespace

TransformerBlock::TransformerBlock(ParameterRegistry& registry, const ModelConfig& c, const BlockPlace& place)
    : name_(place.name),
      attention_norm_(registry, name_ + ".attention_norm", c, place.tp.sharded_sequence()),
      attention_(make_attention_layer(registry, name_ + ".attention", c, attention_place(c, place))),
      mlp_norm_(registry, name_ + ".mlp_norm", c, place.tp.sharded_sequence()),
      mlp_(make_mlp(registry, c, place)) {}

void TransformerBlock::forward(ResidualStream& stream, const Batch& batch, double dropout_probability,
                               const DropoutPlace& place) const {
  NormOutput norm = attention_norm_(stream.x_SBH, stream.branch_SBH);
  stream.x_SBH = norm.sum;
  stream.branch_SBH = dropout(attention_->forward(norm), name_ + ".attention.dropout", dropout_probability, place);

  norm = mlp_norm_(stream.x_SBH, stream.branch_SBH);
  stream.x_SBH = norm.sum;
  stream.branch_SBH = dropout(mlp_->forward(norm, batch), name_ + ".mlp.dropout", dropout_probability, place);
}

void TransformerBlock::decode(ResidualStream& stream, const Batch& batch, AttentionCache& cache) const {
  NormOutput norm = attention_norm_(stream.x_SBH, stream.branch_SBH);
  stream = {norm.sum, attention_->decode(norm, cache)};
  norm = mlp_norm_(stream.x_SBH, stream.branch_SBH);
  stream = {norm.sum, mlp_->forward(norm, batch)};
}

}  // namespace ranklab
