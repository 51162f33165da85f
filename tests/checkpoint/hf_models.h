// Tiny models of each Hugging Face family.
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
#include "tests/checkpoint/hf_weights.h"
#include "tests/checkpoint/tensor_files.h"

namespace ranklab::checkpoint_samples {

inline ModelConfig tiny_llama() {
  return {.num_layers = 2,
          .hidden_size = 8,
          .ffn_hidden_size = 3,
          .num_attention_heads = 4,
          .num_query_groups = 2,
          .vocab_size = 5,
          .seq_length = 16,
          .rope_theta = 500.0};
}
inline ModelConfig tiny_gpt2() {
  ModelConfig c{.num_layers = 2,
                .hidden_size = 4,
                .ffn_hidden_size = 6,
                .num_attention_heads = 2,
                .vocab_size = 5,
                .seq_length = 7};
  c.norm = NormKind::kLayerNorm;
  c.position = PositionKind::kLearned;
  c.activation = ActivationKind::kGelu;
  c.dropout = 0.25;
  c.add_bias = c.tie_embeddings = true;
  return c;
}
inline ModelConfig tiny_mixtral() {
  ModelConfig c = tiny_llama();
  c.moe = {
      .num_experts = 3, .topk = 2, .ffn_hidden_size = 5, .balancing = LoadBalancing::kAuxLoss, .aux_loss_coeff = 0.02};
  return c;
}
inline ModelConfig tiny_deepseek() {
  ModelConfig c{.num_layers = 2,
                .hidden_size = 6,
                .ffn_hidden_size = 5,
                .num_attention_heads = 2,
                .vocab_size = 7,
                .seq_length = 32,
                .norm_epsilon = 1e-6};
  c.mla = {.q_lora_rank = 4, .kv_lora_rank = 5, .qk_head_dim = 3, .qk_pos_emb_head_dim = 6, .v_head_dim = 2};
  c.yarn = {.scaling_factor = 2, .original_seq_length = 16};
  c.moe = {.num_experts = 4,
           .topk = 2,
           .ffn_hidden_size = 3,
           .shared_ffn_hidden_size = 6,
           .first_dense_layers = 1,
           .score = RouterScore::kSigmoid,
           .num_groups = 2,
           .group_topk = 1,
           .scaling_factor = 2.5,
           .expert_bias = true};
  c.mtp_num_layers = 1;
  return c;
}
inline ModelConfig tiny_deepseek_v2() {  // softmax-routed, queries not compressed
  ModelConfig c = tiny_deepseek();
  c.mla.q_lora_rank = 0;
  c.moe = {.num_experts = 4,
           .topk = 2,
           .ffn_hidden_size = 3,
           .shared_ffn_hidden_size = 6,
           .first_dense_layers = 1,
           .normalize_topk = false,
           .scaling_factor = 1.5};
  c.mtp_num_layers = 0;
  return c;
}
inline ModelConfig tiny_latent() {  // no experts, queries not compressed
  ModelConfig c = tiny_deepseek();
  c.mla.q_lora_rank = 0;
  c.moe = {};
  c.yarn = {};
  return c;
}
inline ModelConfig tiny_latent_of_experts() {  // whose settings of experts have stayed
  ModelConfig c = tiny_latent();
  c.moe = tiny_deepseek().moe;
  c.moe.num_experts = 0;
  return c;
}
inline ModelConfig tiny_qwen2() {
  ModelConfig c = tiny_llama();
  c.add_qkv_bias = c.tie_embeddings = true;
  return c;
}
inline ModelConfig tiny_qwen3() {  // heads wider than a share of the hidden size
  ModelConfig c = tiny_llama();
  c.kv_channels = 6;
  c.qk_norm = true;
  return c;
}
inline ModelConfig tiny_qwen2_moe() {
  ModelConfig c = tiny_qwen2();
  c.moe = {.num_experts = 3,
           .topk = 2,
           .ffn_hidden_size = 5,
           .shared_ffn_hidden_size = 7,
           .shared_gate = true,
           .normalize_topk = false};
  return c;
}
inline ModelConfig tiny_qwen3_moe() {  // its first layer dense
  ModelConfig c = tiny_qwen3();
  c.moe = {.num_experts = 3,
           .topk = 2,
           .ffn_hidden_size = 5,
           .first_dense_layers = 1,
           .balancing = LoadBalancing::kAuxLoss,
           .aux_loss_coeff = 0.02};
  return c;
}
inline ModelConfig tiny_llama3() {  // Llama 3.1's stretch, and biases of attention alone
  ModelConfig c = tiny_llama();
  c.rope_scaling = {.kind = RopeScalingKind::kLlama3,
                    .factor = 32,
                    .original_seq_length = 12,
                    .low_freq_factor = 1.5,
                    .high_freq_factor = 3};
  c.add_attention_bias = true;
  return c;
}
inline ModelConfig tiny_linear() {
  ModelConfig c = tiny_llama();
  c.rope_scaling = {.kind = RopeScalingKind::kLinear, .factor = 2.5};
  return c;
}
inline ModelConfig tiny_dynamic() {  // as a file has it: the longest sequence is that times the factor
  ModelConfig c = tiny_llama();
  c.kv_channels = 4;
  c.rope_scaling = {.kind = RopeScalingKind::kDynamic, .factor = 2, .original_seq_length = 8};
  return c;
}
inline ModelConfig tiny_mistral() {
  ModelConfig c = tiny_llama();
  c.hf_architecture = "MistralForCausalLM";
  c.yarn = {.scaling_factor = 4, .original_seq_length = 4, .mscale_all_dim = 0, .attention_factor = 1.25};
  c.yarn.truncate = false;
  return c;
}
inline ModelConfig tiny_top1() {
  ModelConfig c = tiny_mixtral();
  c.moe.topk = 1;
  c.moe.normalize_top1 = true;
  return c;
}
inline ModelConfig tiny_qwen3_bias() {
  ModelConfig c = tiny_qwen3();
  c.add_attention_bias = true;
  return c;
}
inline ModelConfig tiny_halves() {
  ModelConfig c = tiny_deepseek();
  c.hf_rope_interleave = false;
  return c;
}
inline ModelConfig tiny_partly() {  // half of each head turns; Phi-3's one matrix
  ModelConfig c = tiny_llama();
  c.hidden_size = 16;
  c.num_attention_heads = 2;
  c.num_query_groups = 1;
  c.rotary_percent = 0.5;
  c.hf_architecture = "Phi3ForCausalLM";
  return c;
}
inline ModelConfig tiny_stablelm() {
  ModelConfig c = tiny_partly();
  c.hf_architecture = "auto";
  c.norm = NormKind::kLayerNorm;
  c.add_qkv_bias = true;
  return c;
}
inline ModelConfig tiny_stablelm_parallel() {
  ModelConfig c = tiny_stablelm();
  c.residual_form = ResidualForm::kParallelOneNorm;
  return c;
}
inline ModelConfig tiny_window() {
  ModelConfig c = tiny_llama();
  c.hf_architecture = "MistralForCausalLM";
  c.window_size = 6;
  return c;
}
inline ModelConfig tiny_qwen2_window() {
  ModelConfig c = tiny_qwen2();
  c.window_size = 6;
  return c;
}
inline ModelConfig tiny_qwen2_some_windows() {  // its second layer alone
  ModelConfig c = tiny_qwen2_window();
  c.window_layers = {.pattern = {false, true}};
  return c;
}
inline ModelConfig tiny_olmo2() {
  ModelConfig c = tiny_llama();
  c.norm_placement = NormPlacement::kBehind;
  c.qk_norm = true;
  c.qk_norm_width = QkNormWidth::kAllHeads;
  return c;
}
inline ModelConfig tiny_olmo3() {
  ModelConfig c = tiny_olmo2();
  c.window_size = 5;
  c.window_layers = {.skip_freq = 2};
  c.local_rope_theta = c.rope_theta;
  c.yarn = {.scaling_factor = 4, .original_seq_length = 4, .mscale_all_dim = 0};
  return c;
}
inline ModelConfig tiny_gemma2() {
  ModelConfig c = tiny_llama();
  c.kv_channels = 6;
  c.norm_placement = NormPlacement::kBoth;
  c.norm_1p = c.scale_embeddings = c.tie_embeddings = true;
  c.activation = ActivationKind::kGeGlu;
  c.query_pre_attn_scalar = 9;
  c.attn_logit_softcapping = 2.5;
  c.final_logit_softcapping = 3.5;
  c.window_size = 5;
  c.window_layers = {.skip_freq = 2};
  return c;
}
inline ModelConfig tiny_gemma3() {
  ModelConfig c = tiny_gemma2();
  c.qk_norm = true;
  c.query_pre_attn_scalar = c.attn_logit_softcapping = c.final_logit_softcapping = 0;
  c.local_rope_theta = 70;
  c.rope_scaling = {.kind = RopeScalingKind::kLinear, .factor = 4};
  return c;
}
inline ModelConfig tiny_gpt_neox() {  // half of each head turns
  ModelConfig c = tiny_llama();
  c.hidden_size = 16;
  c.num_attention_heads = 2;
  c.num_query_groups = 0;
  c.rotary_percent = 0.5;
  c.norm = NormKind::kLayerNorm;
  c.activation = ActivationKind::kGeluErf;
  c.add_bias = true;
  c.residual_form = ResidualForm::kParallel;
  return c;
}
inline ModelConfig tiny_phi2() {
  ModelConfig c = tiny_gpt_neox();
  c.activation = ActivationKind::kGelu;
  c.residual_form = ResidualForm::kParallelOneNorm;
  c.add_head_bias = true;
  return c;
}
inline ModelConfig tiny_smollm3() {  // its second layer has no positions
  ModelConfig c = tiny_llama();
  c.hf_architecture = "SmolLM3ForCausalLM";
  c.rope_layers = {.skip_freq = 2};
  return c;
}
inline ModelConfig tiny_smollm3_window() {
  ModelConfig c = tiny_smollm3();
  c.rope_layers = {.skip_freq = 1};
  c.add_attention_bias = true;
  c.window_size = 6;
  c.window_layers = {.pattern = {false, true}};
  return c;
}
inline ModelConfig tiny_nemotron() {  // half of each head turns
  ModelConfig c = tiny_stablelm();
  c.add_qkv_bias = false;
  c.norm_1p = true;
  c.activation = ActivationKind::kSquaredRelu;
  return c;
}
inline ModelConfig tiny_glm4_moe() {  // half of each head turns: its norms, too, have rows in another order there
  ModelConfig c = tiny_partly();
  c.hf_architecture = "auto";
  c.qk_norm = c.add_qkv_bias = true;
  c.moe = {.num_experts = 4,
           .topk = 2,
           .ffn_hidden_size = 3,
           .shared_ffn_hidden_size = 6,
           .first_dense_layers = 1,
           .score = RouterScore::kSigmoid,
           .scaling_factor = 1.5,
           .expert_bias = true};
  c.mtp_num_layers = 1;
  return c;
}
inline ModelConfig tiny_glm4_moe_plain() {
  ModelConfig c = tiny_glm4_moe();
  c.qk_norm = c.add_qkv_bias = false;
  c.rotary_percent = 1;
  c.mtp_num_layers = 0;
  return c;
}
inline ModelConfig tiny_gpt_oss() {  // its first layer has a window
  ModelConfig c = tiny_llama();
  c.add_bias = c.moe.router_bias = true;
  c.activation = ActivationKind::kSwiGluOai;
  c.softmax = SoftmaxKind::kLearnable;
  c.window_size = 6;
  c.window_layers = {.skip_freq = 2};
  c.moe.num_experts = 3;
  c.yarn = {.scaling_factor = 4, .original_seq_length = 4, .mscale_all_dim = 0, .truncate = false};
  return c;
}
inline ModelConfig tiny_gpt_oss_plain() {
  ModelConfig c = tiny_gpt_oss();
  c.yarn = {};
  c.moe.topk = 1;
  c.moe.normalize_top1 = true;
  return c;
}
inline ModelConfig tiny_llama4() {  // layers in turn: rotary positions and chunks, or neither; dense, or experts
  ModelConfig c = tiny_llama();
  c.num_layers = 4;
  c.kv_channels = 4;
  c.rope_layers = c.window_layers = {.skip_freq = 2};
  c.attention_chunk = 5;
  c.qk_l2_norm = true;
  c.query_temperature_scale = 0.25;
  c.query_temperature_floor = 4;
  c.moe = {.num_experts = 3,
           .topk = 1,
           .ffn_hidden_size = 5,
           .shared_ffn_hidden_size = 5,
           .layers = {.pattern = {false, true, false, true}},
           .score = RouterScore::kSigmoid,
           .normalize_topk = false,
           .weigh_inputs = true};
  return c;
}
inline ModelConfig tiny_llama4_plain() {  // all layers alike, of experts
  ModelConfig c = tiny_llama4();
  c.rope_layers = c.window_layers = {};
  c.attention_chunk = 0;
  c.query_temperature_scale = 0;
  c.query_temperature_floor = 8192;
  c.add_attention_bias = true;
  c.moe.layers = {};
  return c;
}
inline ModelConfig tiny_qwen3_moe_some() {  // layers with experts between dense ones
  ModelConfig c = tiny_qwen3_moe();
  c.num_layers = 4;
  c.moe.first_dense_layers = 0;
  c.moe.layers = {.pattern = {true, false, false, true}};
  return c;
}
inline ModelConfig tiny_qwen3_5() {  // linear attention and gated softmax attention in turn
  ModelConfig c = tiny_llama();
  c.num_attention_heads = 2;
  c.num_query_groups = 1;
  c.kv_channels = 8;
  c.rotary_percent = 0.5;
  c.norm_1p = c.qk_norm = c.attention_output_gate = true;
  c.linear = {.kind = LinearAttentionKind::kGatedDeltaNet,
              .layers = {.skip_freq = 2},
              .num_key_heads = 2,
              .num_value_heads = 4,
              .key_head_dim = 3,
              .value_head_dim = 2};
  return c;
}
inline ModelConfig tiny_qwen3_next() {  // ... with experts
  ModelConfig c = tiny_qwen3_5();
  c.moe = {.num_experts = 3, .topk = 2, .ffn_hidden_size = 5, .shared_ffn_hidden_size = 4, .shared_gate = true};
  return c;
}
inline ModelConfig tiny_qwen3_5_moe() {  // ... all experts of a layer in one tensor
  ModelConfig c = tiny_qwen3_next();
  c.hf_architecture = "Qwen3_5MoeForCausalLM";
  c.ffn_hidden_size = c.moe.ffn_hidden_size;
  c.moe.ffn_hidden_size = 0;
  return c;
}
inline ModelConfig tiny_nemotron_h() {  // a mixer a layer; experts in one
  ModelConfig c = tiny_llama();
  c.num_layers = 5;
  c.hybrid_pattern = "M*-EM";
  c.mamba = {.num_heads = 4, .head_dim = 3, .state_dim = 2, .num_groups = 2, .conv_kernel = 3, .min_step = 1e-3};
  c.position = PositionKind::kNone;
  c.activation = ActivationKind::kSquaredRelu;
  c.moe = {.num_experts = 4,
           .topk = 2,
           .ffn_hidden_size = 5,
           .latent_size = 7,
           .shared_ffn_hidden_size = 4,
           .score = RouterScore::kSigmoid,
           .expert_bias = true};
  return c;
}
inline ModelConfig tiny_long() {  // half of a head turns: two pairs
  ModelConfig c = tiny_partly();
  c.rope_scaling = {.kind = RopeScalingKind::kLongRope,
                    .factor = 4,
                    .original_seq_length = 4,
                    .short_factors = {1, 1.25},
                    .long_factors = {1.5, 6}};
  return c;
}
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
          tiny_qwen3_5_moe()};
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
