// Which modules (module_spec.h) each layer of the transformer has, in creation order. Torch-free.
// Thread rule: pure.
#pragma once
#include <optional>
#include <vector>

#include "core/spec/model_config.h"
#include "core/spec/module_spec.h"

namespace ranklab {

// Width 0: the model's hidden size.
ModuleSpec norm_spec(const ModelConfig& config, std::string name, ModulePart part, int64_t width = 0);

ModuleSpec embedding_spec(const ModelConfig& config);
ModuleSpec position_spec(const ModelConfig& config);  // for learned positions
ModuleSpec head_spec(const ModelConfig& config);

// Multi-head, grouped-query or multi-query attention.
struct AttentionSpec {
  ModuleSpec qkv;
  std::optional<ModuleSpec> q_norm, k_norm;
  std::optional<ModuleSpec> sinks;
  ModuleSpec out;
};
AttentionSpec attention_spec(const ModelConfig& config);

// Multi-head latent attention: queries by one projection, or compressed in between.
struct LatentAttentionSpec {
  std::optional<ModuleSpec> q_down, q_norm;
  ModuleSpec q;
  ModuleSpec kv_down, kv_norm, kv_up;
  std::optional<ModuleSpec> sinks;
  ModuleSpec out;
};
LatentAttentionSpec latent_attention_spec(const ModelConfig& config);

// Gated DeltaNet: one projection to queries, keys, values, the output's gate and the two gates of the recurrence.
struct DeltaNetSpec {
  ModuleSpec in, conv, a_log, dt_bias, norm, out;
};
DeltaNetSpec delta_net_spec(const ModelConfig& config);

// Mamba-2: one projection to the output's gate, to what a short convolution reads (x, B, C) and to the steps.
struct MambaSpec {
  ModuleSpec in, conv, a_log, dt_bias, d, norm, out;
};
MambaSpec mamba_spec(const ModelConfig& config);

struct MlpSpec {
  ModuleSpec up, down;
};
MlpSpec mlp_spec(const ModelConfig& config);

struct MoeSpec {
  ModuleSpec router;
  std::optional<MlpSpec> shared;
  std::optional<ModuleSpec> shared_gate;
  std::optional<ModuleSpec> latent_down, latent_up;  // before and behind the routed experts
  MlpSpec expert;                                    // for each of them
};
MoeSpec moe_spec(const ModelConfig& config);

// The norms around attention and MLP, of those that the layer has.
struct BlockNormSpecs {
  std::optional<ModuleSpec> attention, attention_post, mlp, mlp_post;
};
BlockNormSpecs block_norm_specs(const ModelConfig& config, bool attention, bool mlp);

// A multi-token-prediction module, without its block.
struct PredictionSpec {
  ModuleSpec embedding_norm, state_norm, projection, norm;
};
PredictionSpec prediction_spec(const ModelConfig& config);

}  // namespace ranklab
