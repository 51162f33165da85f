// The modules (module_spec.h) of each kind of layer of the transformer, in creation order. Torch-free. Thread rule:
// pure.
#pragma once
#include <optional>

#include "core/spec/model_config.h"
#include "core/spec/module_spec.h"

namespace ranklab {

// `width` 0: the model's hidden size.
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

// Multi-head latent attention. Queries come from one projection, or are compressed in between.
struct LatentAttentionSpec {
  std::optional<ModuleSpec> q_down, q_norm;
  ModuleSpec q;
  ModuleSpec kv_down, kv_norm, kv_up;
  std::optional<ModuleSpec> sinks;
  ModuleSpec out;
};
LatentAttentionSpec latent_attention_spec(const ModelConfig& config);

// Gated DeltaNet. One projection gives queries, keys, values, the output gate and the two gates of the recurrence.
struct DeltaNetSpec {
  ModuleSpec in, conv, a_log, dt_bias, norm, out;
};
DeltaNetSpec delta_net_spec(const ModelConfig& config);

// Mamba-2. One projection gives the output gate, the inputs of a short convolution (x, B, C) and the step sizes.
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
  std::optional<ModuleSpec> latent_down, latent_up;  // before and after the routed experts
  MlpSpec expert;                                    // the same for every expert
};
MoeSpec moe_spec(const ModelConfig& config);

// The norms around attention and MLP, as far as the layer has them.
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
