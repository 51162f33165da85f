#include "core/model/block.h"

#include <cmath>

#include "core/nn/activation.h"

namespace ranklab {
namespace {

std::string layer_name(int64_t layer) { return "layers." + std::to_string(layer); }

// Outputs that are added to the residual stream start smaller, so that its variance does not grow with depth (GPT-2).
Init residual_init(const ModelConfig& c) {
  return {InitKind::kNormal, c.init_std / std::sqrt(2.0 * static_cast<double>(c.num_layers))};
}

std::vector<int64_t> qkv_segments(const ModelConfig& c) {
  const int64_t kv = c.query_groups() * c.head_dim();
  return {c.hidden_size, kv, kv};
}

std::vector<int64_t> up_segments(const ModelConfig& c) {
  if (c.activation == ActivationKind::kSwiGlu) return {c.ffn_hidden_size, c.ffn_hidden_size};
  return {c.ffn_hidden_size};
}

LinearSize size_of(int64_t in, const std::vector<int64_t>& segments) {
  int64_t out = 0;
  for (const int64_t segment : segments) out += segment;
  return {in, out};
}

}  // namespace

TransformerBlock::TransformerBlock(ParameterRegistry& registry, const ModelConfig& c, int64_t layer, RopeTable rope,
                                   TensorParallel tp)
    : name_(layer_name(layer)),
      attention_{c.num_attention_heads / tp.size(), c.query_groups() / tp.size(), c.head_dim()},
      activation_(c.activation),
      rope_(std::move(rope)),
      attention_norm_(registry, name_ + ".attention_norm", c, tp.sharded_sequence()),
      qkv_(registry, name_ + ".attention.qkv", size_of(c.hidden_size, qkv_segments(c)), qkv_segments(c),
           {InitKind::kNormal, c.init_std}, c.add_bias, tp),
      out_(registry, name_ + ".attention.out", {c.hidden_size, c.hidden_size}, residual_init(c), c.add_bias, tp),
      mlp_norm_(registry, name_ + ".mlp_norm", c, tp.sharded_sequence()),
      up_(registry, name_ + (c.activation == ActivationKind::kSwiGlu ? ".mlp.gate_up" : ".mlp.up"),
          size_of(c.hidden_size, up_segments(c)), up_segments(c), {InitKind::kNormal, c.init_std}, c.add_bias, tp),
      down_(registry, name_ + ".mlp.down", {c.ffn_hidden_size, c.hidden_size}, residual_init(c), c.add_bias, tp) {}

void TransformerBlock::forward(ResidualStream& stream, double dropout_probability, const DropoutPlace& place) const {
  NormOutput norm = attention_norm_(stream.x_SBH, stream.branch_SBH);
  stream.x_SBH = norm.sum;
  stream.branch_SBH = dropout(out_(causal_attention(qkv_(norm), attention_, rope_)), name_ + ".attention.dropout",
                              dropout_probability, place);

  norm = mlp_norm_(stream.x_SBH, stream.branch_SBH);
  stream.x_SBH = norm.sum;
  const at::Tensor up = up_(norm);
  const Activated active = activate(activation_ == ActivationKind::kSwiGlu ? swiglu : gelu_tanh, up);
  stream.branch_SBH = dropout(down_(active), name_ + ".mlp.dropout", dropout_probability, place);
}

}  // namespace ranklab
