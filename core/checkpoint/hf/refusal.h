// Reports what a Hugging Face family cannot express, by the name of the setting: a model is exported only when the
// classes of transformers compute exactly what ranklab computes. Thread rule: pure functions.
#pragma once
#include <string>

#include "core/spec/model_config.h"

namespace ranklab {

// Refuses on behalf of one architecture. All methods throw kInvalidArgument.
class HfRefusal {
 public:
  explicit HfRefusal(const std::string& architecture) : architecture_(architecture) {}
  void require(bool legal, const char* setting, const std::string& got, const std::string& want) const;
  void require_off(const char* setting, bool on) const;
  void require_number(const char* setting, double got, double want) const;

 private:
  const std::string& architecture_;
};

// Refuses a valid config.json or folder that uses a feature which ranklab lacks, so another copy of the file would not
// help. Throws kInvalidArgument.
[[noreturn]] void refuse_hf_feature(const std::string& path, const std::string& what, const std::string& got,
                                    const std::string& want);

// Requires rotary embeddings, either unscaled or scaled in a way that several classes support.
void check_plain_rotary_positions(const HfRefusal& refusal, const ModelConfig& config);
// The same, and no MTP modules.
void check_rotary_positions(const HfRefusal& refusal, const ModelConfig& config);
// Requires attention, then the MLP (not in parallel), and a head without a bias.
void check_sequential(const HfRefusal& refusal, const ModelConfig& config);
// Requires embeddings, scores and logits that are neither scaled by a setting nor soft-capped.
void check_plain_scales(const HfRefusal& refusal, const ModelConfig& config);
// The same, and norms that multiply by their weight itself.
void check_no_gemma(const HfRefusal& refusal, const ModelConfig& config);
// Requires rotary embeddings and SwiGLU.
void check_swiglu(const HfRefusal& refusal, const ModelConfig& config);
// The same, and the same positions in all layers.
void check_swiglu_layers(const HfRefusal& refusal, const ModelConfig& config);
// Requires pre-norms (on the inputs of attention and MLP); norms of queries and keys, if any, are per head.
void check_norms_before(const HfRefusal& refusal, const ModelConfig& config);
// Requires all of the above; rotary embeddings may be partial.
void check_partly_rotary_layers(const HfRefusal& refusal, const ModelConfig& config);
// The same, with rotary embeddings over the whole head.
void check_rotary_layers(const HfRefusal& refusal, const ModelConfig& config);
// The same, without windows and without norms of queries and keys.
void check_llama_layers(const HfRefusal& refusal, const ModelConfig& config);
// Requires that a sliding window, if any, applies to all layers.
void check_window_of_all_layers(const HfRefusal& refusal, const ModelConfig& config);
// Requires that no token is dropped, and that experts get tokens according to their scores.
void check_routing(const HfRefusal& refusal, const MoeConfig& moe);
// Requires plain softmax routing: no groups of experts, no scaling, no balancing bias.
void check_plain_softmax_routing(const HfRefusal& refusal, const MoeConfig& moe);
// Requires layers with only routed experts (no dense layer, no shared expert), and weights normalized for any top-k.
void check_routed_experts_alone(const HfRefusal& refusal, const MoeConfig& moe);
// Requires plain softmax routing in layers whose linear layers have no bias.
void check_softmax_experts(const HfRefusal& refusal, const ModelConfig& config);

}  // namespace ranklab
