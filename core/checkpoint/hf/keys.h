// Keys of config.json (key.h) that several Hugging Face families have, in the order in which they are written and read.
// Keys that are only written are transformers' own. RoPE is handled separately (rope.h). Thread rule: pure functions.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/checkpoint/hf/key.h"

namespace ranklab {

using HfKeys = std::vector<HfKey>;

// Whether sums and products of a few such sizes fit in 64 bits. Full validation happens after all keys are read.
bool is_sane(int64_t size);

// The sizes of any transformer, under Llama's names, and its activation, if a key for it is given.
HfKeys transformer_keys(const char* activation_key = "hidden_act", const char* activation = "silu");
// Biases of all linear layers, or only of attention: "attention_bias" and "mlp_bias".
HfKeys linear_bias_keys();
HfKey mlp_bias_key();           // the second of these
HfKeys ending_keys(bool tied);  // `tied`: the value in a file without the key
// A token that other programs look for; null if there is none.
HfKey token_key(const std::string& key, int64_t ModelConfig::*member);
// The same for padding. `none`: what is written if there is none.
HfKey pad_token_key(HfJson none);
HfKey positions_key(const std::string& key);
// The width of a head; read after the sizes. `absent`: the value in a file without the key; null: hidden_size /
// num_attention_heads.
HfKey head_dim_key(HfJson absent = {});

// A size that is null if it does not apply, which corresponds to 0 here. `absent`: the value in a file without the key.
HfKey optional_size_key(const std::string& key, int64_t ModelConfig::*size, HfJson absent);
// The sliding window of attention. `absent`: the value in a file without the key; null: none.
HfKey window_key(HfJson absent = {});
// The same for a class that requires a number, even if no layer has a window.
HfKey window_number_key(int64_t absent);

// The same with a switch, "use_sliding_window", which is off in a file without it.
HfKeys switched_window_keys();

// The key, read after the window, that lists which layers have it; in a file without the list nothing changes. Written
// if layers differ, or if `always`.
HfKey layer_types_key(bool always);
// Layers that attend only to nearby positions: within a window, or within chunks, each with a size of its own.
struct LocalLayers {
  const char* kind;            // their name in the list: "sliding_attention"
  int64_t ModelConfig::*size;  // 0: there are no such layers
  const char* size_name;       // for a message about a file that lists them but has no size
};
HfKey local_layers_key(LocalLayers local, bool always);
// For each layer, whether the list says `kind`; the others must be full_attention.
std::vector<bool> layers_of_kind(const HfValue& list, const std::string& kind);
// The same key in a class that does not read it: a list that disagrees with the model is refused.
HfKey same_layer_types_key();
// Gives the window to these layers; if there are none, the model has no window.
void set_window_layers(ModelConfig& config, const std::vector<bool>& layers);
void set_local_layers(ModelConfig& config, int64_t ModelConfig::*size, const std::vector<bool>& layers);

// Which layers have rotary positions: first the interval of layers that have none, for files without a list; then the
// list, which contains 1 for each layer that has them, despite its name.
HfKey rotary_interval_key();
HfKey rotary_layers_key();

// The interval of layers that have experts; read first, for files without a list.
HfKey expert_interval_key(const std::string& key);
// For each layer, whether its index is in the list.
std::vector<bool> listed_layers(const ModelConfig& config, const HfValue& list);
// For each layer, whether it has experts according to the interval.
std::vector<bool> layers_of_interval(const ModelConfig& config);
// Gives experts to these layers; if there are none, the model has no experts.
void set_expert_layers(ModelConfig& config, const std::vector<bool>& layers);
// The number of routed experts. A dense model is expressed by other keys, so 0 is refused.
HfKey experts_key(const std::string& key);
// Whether the weights of a token's experts are normalized to sum to 1. `absent`: the value in a file without the key.
HfKey normalization_key(bool absent);
// The number of experts per token, in a class that normalizes their weights for any top-k.
HfKey normalized_topk_key(int64_t absent);
// The width of an expert, in a class without dense layers.
HfKey expert_width_key(const std::string& key = "intermediate_size");
// Only affects training. The file does not say over which tokens the loss balances.
HfKey balancing_key(const std::string& key, LoadBalancing kind);

// "use_parallel_residual": true means that layers have `form`, false that they are sequential.
HfKey parallel_residual_key(ResidualForm form, bool absent);

}  // namespace ranklab
