// The tiny models of all Hugging Face families, and what their tests have in common.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/checkpoint/hf/config.h"
#include "core/checkpoint/hf/export.h"
#include "core/checkpoint/hf/import.h"
#include "core/checkpoint/hf/mapping.h"
#include "core/spec/module_table.h"
#include "tests/checkpoint/hf_expert_models.h"
#include "tests/checkpoint/hf_weights.h"
#include "tests/checkpoint/tensor_files.h"

namespace ranklab::checkpoint_samples {

inline std::vector<ModelConfig> tiny_models() {
  return {tiny_llama(),        tiny_gpt2(),           tiny_mixtral(),
          tiny_deepseek(),     tiny_latent(),         tiny_qwen2(),
          tiny_qwen3(),        tiny_qwen2_moe(),      tiny_qwen3_moe(),
          tiny_llama3(),       tiny_linear(),         tiny_dynamic(),
          tiny_mistral(),      tiny_top1(),           tiny_qwen3_bias(),
          tiny_halves(),       tiny_partly(),         tiny_stablelm(),
          tiny_window(),       tiny_qwen2_window(),   tiny_qwen2_some_windows(),
          tiny_olmo2(),        tiny_gemma2(),         tiny_gemma3(),
          tiny_gpt_neox(),     tiny_phi2(),           tiny_long(),
          tiny_olmo3(),        tiny_smollm3(),        tiny_smollm3_window(),
          tiny_nemotron(),     tiny_gpt_oss(),        tiny_gpt_oss_plain(),
          tiny_glm4_moe(),     tiny_glm4_moe_plain(), tiny_llama4(),
          tiny_llama4_plain(), tiny_qwen3_moe_some(), tiny_qwen3_next(),
          tiny_qwen3_5(),      tiny_nemotron_h(),     tiny_deepseek_v2(),
          tiny_qwen3_5_moe(),  tiny_seed_oss(),       tiny_granite(),
          tiny_granite_moe(),  tiny_glm4(),           tiny_ernie(),
          tiny_ernie_moe(),    tiny_cohere(),         tiny_cohere2()};
}

inline std::string text_of(const ModelConfig& config) {
  return hf_config_json(config, hf_family(config), TensorType::kF32);
}

// What `act` throws; "" when it does not.
template <typename Act>
std::string message_of(const Act& act) {
  try {
    act();
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

// What a config.json says after that change.
using JsonEdit = std::function<void(nlohmann::ordered_json&)>;
inline ModelConfig read_edited(const ModelConfig& config, const JsonEdit& change) {
  auto file = nlohmann::ordered_json::parse(text_of(config));
  change(file);
  return read_hf_config(file.dump(), "config.json").model;
}

// Why no family has the model after that change.
template <typename Change>
std::string family_refusal(ModelConfig config, const Change& change) {
  change(config);
  return message_of([&] { hf_family(config); });
}
inline auto says(const char* architecture, const char* setting) {
  return ::testing::AllOf(::testing::HasSubstr(architecture), ::testing::HasSubstr(setting));
}

}  // namespace ranklab::checkpoint_samples
