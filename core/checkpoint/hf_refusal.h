// What a Hugging Face family cannot express, by the setting's name: a model is exported only when the classes of
// transformers compute exactly what ranklab computes. Thread rule: pure functions.
#pragma once
#include <cstdint>
#include <string>

#include "core/spec/model_config.h"

namespace ranklab {

// Refuses in the name of one architecture. All throw kInvalidArgument.
class HfRefusal {
 public:
  explicit HfRefusal(const std::string& architecture) : architecture_(architecture) {}
  void require(bool legal, const char* setting, const std::string& got, const std::string& want) const;
  void require_off(const char* setting, bool on) const;
  void require_number(const char* setting, double got, double want) const;

 private:
  const std::string& architecture_;
};

// A sound config.json or folder of what ranklab does not have: another copy of the file would not help. Throws
// kInvalidArgument.
[[noreturn]] void refuse_hf_feature(const std::string& path, const std::string& what, const std::string& got,
                                    const std::string& want);

// Rotary positions, without MTP modules.
void check_rotary_positions(const HfRefusal& refusal, const ModelConfig& config);
// Attention, then the MLP; a head without a bias.
void check_sequential(const HfRefusal& refusal, const ModelConfig& config);
// Nothing of what the families of Gemma alone have.
void check_no_gemma(const HfRefusal& refusal, const ModelConfig& config);
// Rotary positions and SwiGLU.
void check_swiglu(const HfRefusal& refusal, const ModelConfig& config);
// ... the same positions in all layers.
void check_swiglu_layers(const HfRefusal& refusal, const ModelConfig& config);
// Norms of what attention and MLP see, and of each head where there are any of queries and keys.
void check_norms_before(const HfRefusal& refusal, const ModelConfig& config);
// Layers with both.
void check_partly_rotary_layers(const HfRefusal& refusal, const ModelConfig& config);
// ... whose heads turn as a whole.
void check_rotary_layers(const HfRefusal& refusal, const ModelConfig& config);
// A window of attention is that of all layers.
void check_window_of_all_layers(const HfRefusal& refusal, const ModelConfig& config);
// No token is dropped, and every expert gets its tokens by their scores.
void check_routing(const HfRefusal& refusal, const MoeConfig& moe);
// Experts chosen by a plain softmax, among layers without biases of linear layers.
void check_softmax_experts(const HfRefusal& refusal, const ModelConfig& config);

}  // namespace ranklab
