#include "core/spec/layer_specs.h"

#include <cmath>
#include <utility>

namespace ranklab {
namespace {

using Part = ModulePart;
using Split = ModuleSplit;

Init normal(const ModelConfig& c) { return {InitKind::kNormal, c.init_std}; }

// Weights that write to the residual stream start with smaller values, as in GPT-2.
Init residual(const ModelConfig& c) {
  return {InitKind::kNormal, c.init_std / std::sqrt(static_cast<double>(c.residual_branches()))};
}

// The same standard deviation as PyTorch's uniform initialization of convolutions, which preserves the size of values.
Init convolution(int64_t kernel) { return {InitKind::kNormal, 1 / std::sqrt(3.0 * static_cast<double>(kernel))}; }

ModuleSpec gate(const ModelConfig& c, const char* name, int64_t outputs, Part part) {
  return {.name = name, .shape = {outputs, c.hidden_size}, .init = normal(c), .part = part, .is_gate = true};
}

// `width`: the width of its input and output.
MlpSpec mlp_of(const ModelConfig& c, int64_t width, int64_t ffn, Part up, Part down) {
  const bool gated = c.has_gated_mlp();
  return {.up = {.name = gated ? "gate_up" : "up",
                 .shape = {gated ? 2 * ffn : ffn, width},
                 .out_parts = gated ? std::vector<int64_t>{ffn, ffn} : std::vector<int64_t>{},
                 .split = Split::kColumn,
                 .bias = c.add_bias,
                 .init = normal(c),
                 .part = up},
          .down = {.name = "down",
                   .shape = {width, ffn},
                   .split = Split::kRow,
                   .bias = c.add_bias,
                   .init = residual(c),
                   .part = down}};
}

std::optional<ModuleSpec> norm_if(bool wanted, const ModelConfig& c, const char* name, Part part) {
  return wanted ? std::optional(norm_spec(c, name, part)) : std::nullopt;
}

// Always RMSNorm, whatever norm the rest of the model uses.
ModuleSpec query_or_key_norm(const ModelConfig& c, const char* name, int64_t heads_width) {
  const bool by_heads = c.qk_norm_width == QkNormWidth::kHead;
  ModuleSpec norm = norm_spec(c, name, Part::kAttentionIn, by_heads ? c.head_dim() : heads_width);
  norm.bias = false;
  norm.by_heads = by_heads;
  if (!by_heads) norm.split = Split::kColumn;
  return norm;
}

// One learned number per query head.
std::optional<ModuleSpec> sinks_spec(const ModelConfig& c) {
  if (c.softmax != SoftmaxKind::kLearnable) return std::nullopt;
  return ModuleSpec{.name = "sinks",
                    .shape = {c.num_attention_heads},
                    .split = Split::kColumn,
                    .init = normal(c),
                    .part = Part::kAttentionIn};
}

}  // namespace

ModuleSpec norm_spec(const ModelConfig& c, std::string name, Part part, int64_t width) {
  return {.name = std::move(name),
          .shape = {width == 0 ? c.hidden_size : width},
          .bias = c.norm == NormKind::kLayerNorm && c.norm_bias,
          .init = {c.norm_weight_offset() == 0 ? InitKind::kOnes : InitKind::kZeros},
          .part = part};
}

ModuleSpec embedding_spec(const ModelConfig& c) {
  return {.name = "embedding",
          .shape = {c.vocab_size, c.hidden_size},
          .split = Split::kVocabulary,
          .init = normal(c),
          .part = Part::kEmbedding};
}

ModuleSpec position_spec(const ModelConfig& c) {
  return {.name = "position", .shape = {c.seq_length, c.hidden_size}, .init = normal(c), .part = Part::kEmbedding};
}

ModuleSpec head_spec(const ModelConfig& c) {
  return {.name = "head",
          .shape = {c.vocab_size, c.hidden_size},
          .split = Split::kVocabulary,
          .bias = c.add_head_bias,
          .init = normal(c),
          .part = Part::kHead};
}

AttentionSpec attention_spec(const ModelConfig& c) {
  AttentionSpec spec;
  spec.qkv = {.name = "qkv",
              .shape = {c.qkv_width() + c.output_gate_width(), c.hidden_size},
              .out_parts = {c.query_width(), c.kv_width(), c.kv_width()},
              .split = Split::kColumn,
              .bias = c.has_qkv_bias(),
              .init = normal(c),
              .part = Part::kAttentionIn};
  // After the queries: Hugging Face's files keep the gate in the query projection.
  if (c.attention_output_gate) spec.qkv.out_parts.insert(spec.qkv.out_parts.begin() + 1, c.output_gate_width());
  if (c.qk_norm) {
    spec.q_norm = query_or_key_norm(c, "q_norm", c.query_width());
    spec.k_norm = query_or_key_norm(c, "k_norm", c.kv_width());
  }
  spec.sinks = sinks_spec(c);
  spec.out = {.name = "out",
              .shape = {c.hidden_size, c.query_width()},
              .split = Split::kRow,
              .bias = c.has_attention_out_bias(),
              .init = residual(c),
              .part = Part::kAttentionOut};
  return spec;
}

LatentAttentionSpec latent_attention_spec(const ModelConfig& c) {
  const MlaConfig& m = c.mla;
  const auto linear = [&](const char* name, int64_t in, int64_t out, Split split, bool bias) {
    return ModuleSpec{
        .name = name, .shape = {out, in}, .split = split, .bias = bias, .init = normal(c), .part = Part::kAttentionIn};
  };
  // Biases of the projections that read the residual stream, and of the output projection (as in DeepseekV3Config's
  // attention_bias).
  const bool first = c.has_qkv_bias(), second = c.add_bias;
  const bool compressed = m.q_lora_rank > 0;
  const int64_t heads = c.num_attention_heads, queries = heads * m.query_head_dim();
  LatentAttentionSpec spec;
  if (compressed) {
    spec.q_down = linear("q_down", c.hidden_size, m.q_lora_rank, Split::kReplicated, first);
    spec.q_norm = norm_spec(c, "q_norm", Part::kAttentionIn, m.q_lora_rank);
  }
  spec.q = compressed ? linear("q_up", m.q_lora_rank, queries, Split::kColumn, second)
                      : linear("q", c.hidden_size, queries, Split::kColumn, first);
  spec.kv_down = linear("kv_down", c.hidden_size, m.kv_lora_rank + m.qk_pos_emb_head_dim, Split::kReplicated, first);
  spec.kv_norm = norm_spec(c, "kv_norm", Part::kAttentionIn, m.kv_lora_rank);
  spec.kv_up = linear("kv_up", m.kv_lora_rank, heads * (m.qk_head_dim + m.v_head_dim), Split::kColumn, second);
  spec.sinks = sinks_spec(c);
  spec.out = {.name = "out",
              .shape = {c.hidden_size, heads * m.v_head_dim},
              .split = Split::kRow,
              .bias = c.has_attention_out_bias(),
              .init = residual(c),
              .part = Part::kAttentionOut};
  return spec;
}

DeltaNetSpec delta_net_spec(const ModelConfig& c) {
  const LinearAttentionConfig& l = c.linear;
  const int64_t keys = l.key_width(), values = l.value_width(), heads = l.num_value_heads;
  const auto of_heads = [&](const char* name, InitKind init) {
    return ModuleSpec{
        .name = name, .shape = {heads}, .split = Split::kColumn, .init = {init}, .part = Part::kAttentionIn};
  };
  return {.in = {.name = "in_proj",
                 .shape = {2 * keys + 2 * values + 2 * heads, c.hidden_size},
                 .out_parts = {keys, keys, values, values, heads, heads},
                 .split = Split::kColumn,
                 .init = normal(c),
                 .part = Part::kAttentionIn},
          .conv = {.name = "conv",
                   .shape = {2 * keys + values, 1, l.conv_kernel},
                   .out_parts = {keys, keys, values},
                   .split = Split::kColumn,
                   .init = convolution(l.conv_kernel),
                   .part = Part::kAttentionIn},
          .a_log = of_heads("a_log", InitKind::kLogUniform),
          .dt_bias = of_heads("dt_bias", InitKind::kOnes),
          .norm = {.name = "out_norm",
                   .shape = {l.value_head_dim},
                   .init = {InitKind::kOnes},
                   .part = Part::kAttentionOut,
                   .by_heads = true},
          .out = {.name = "out_proj",
                  .shape = {c.hidden_size, values},
                  .split = Split::kRow,
                  .init = residual(c),
                  .part = Part::kAttentionOut}};
}

MambaSpec mamba_spec(const ModelConfig& c) {
  const MambaConfig& m = c.mamba;
  const int64_t heads = c.mamba_heads(), inner = c.mamba_width(), group = m.num_groups * m.state_dim;
  const auto of_heads = [&](const char* name, Init init) {
    return ModuleSpec{.name = name, .shape = {heads}, .split = Split::kColumn, .init = init, .part = Part::kMambaIn};
  };
  return {.in = {.name = "in_proj",
                 .shape = {2 * inner + 2 * group + heads, c.hidden_size},
                 .out_parts = {inner, inner, group, group, heads},
                 .split = Split::kColumn,
                 .init = normal(c),
                 .part = Part::kMambaIn},
          .conv = {.name = "conv",
                   .shape = {c.mamba_convolved_width(), 1, m.conv_kernel},
                   .out_parts = {inner, group, group},
                   .split = Split::kColumn,
                   .bias = true,
                   .init = convolution(m.conv_kernel),
                   .bias_init = convolution(m.conv_kernel),
                   .part = Part::kMambaIn},
          .a_log = of_heads("a_log", {.kind = InitKind::kLogUniform, .low = 1}),
          .dt_bias = of_heads("dt_bias", {.kind = InitKind::kStepBias}),
          .d = of_heads("d", {.kind = InitKind::kOnes}),
          .norm = {.name = "out_norm",
                   .shape = {inner},
                   .split = Split::kColumn,
                   .init = {InitKind::kOnes},
                   .part = Part::kMambaOut},
          .out = {.name = "out_proj",
                  .shape = {c.hidden_size, inner},
                  .split = Split::kRow,
                  .init = residual(c),
                  .part = Part::kMambaOut}};
}

MlpSpec mlp_spec(const ModelConfig& c) {
  return mlp_of(c, c.hidden_size, c.ffn_hidden_size, Part::kMlpUp, Part::kMlpDown);
}

MoeSpec moe_spec(const ModelConfig& c) {
  MoeSpec spec;
  spec.router = gate(c, "router", c.moe.num_experts, Part::kRouter);
  spec.router.bias = c.moe.router_bias;
  if (c.moe.shared_ffn_hidden_size > 0)
    spec.shared = mlp_of(c, c.hidden_size, c.moe.shared_ffn_hidden_size, Part::kSharedExperts, Part::kSharedExperts);
  if (c.moe.shared_gate && spec.shared) spec.shared_gate = gate(c, "shared_gate", 1, Part::kSharedExperts);
  const int64_t latent = c.moe.latent_size;
  if (latent > 0) {
    const auto projection = [&](const char* name, int64_t in, int64_t out, const Init& init) {
      return ModuleSpec{
          .name = name, .shape = {out, in}, .bias = c.add_bias, .init = init, .part = Part::kLatentProjection};
    };
    spec.latent_down = projection("latent_down", c.hidden_size, latent, normal(c));
    spec.latent_up = projection("latent_up", latent, c.hidden_size, residual(c));
  }
  spec.expert = mlp_of(c, c.expert_width(), c.expert_ffn(), Part::kExperts, Part::kExperts);
  return spec;
}

BlockNormSpecs block_norm_specs(const ModelConfig& c, bool attention, bool mlp) {
  const bool own_mlp_norm = c.has_mlp_norm() || (c.has_norms_before() && !attention);
  return {.attention = norm_if(attention && c.has_norms_before(), c, "attention_norm", Part::kAttentionNorm),
          .attention_post = norm_if(attention && c.has_norms_behind(), c, "attention_post_norm", Part::kAttentionNorm),
          .mlp = norm_if(mlp && own_mlp_norm, c, "mlp_norm", Part::kMlpNorm),
          .mlp_post = norm_if(mlp && c.has_norms_behind(), c, "mlp_post_norm", Part::kMlpNorm)};
}

PredictionSpec prediction_spec(const ModelConfig& c) {
  return {.embedding_norm = norm_spec(c, "enorm", Part::kMtpIn),
          .state_norm = norm_spec(c, "hnorm", Part::kMtpIn),
          .projection = {.name = "proj",
                         .shape = {c.hidden_size, 2 * c.hidden_size},
                         .init = normal(c),
                         .part = Part::kMtpIn},
          .norm = norm_spec(c, "norm", Part::kFinalNorm)};
}

}  // namespace ranklab
