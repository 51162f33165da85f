// The models of the runs with which predictions are compared, in layouts of run_layouts.h.
#pragma once
#include "tests/plan/run_layouts.h"

namespace ranklab {

constexpr double kAlwaysClipped = 1e-3;  // a norm that every gradient exceeds

inline void qwen(TrainConfig& c) {
  c.model.num_query_groups = 4;
  c.model.kv_channels = 24;
  c.model.add_qkv_bias = true;
  c.model.qk_norm = true;
}
inline void llama3(TrainConfig& c) {
  c.model.num_query_groups = 4;
  c.model.add_attention_bias = true;
  c.model.rope_scaling = {.kind = RopeScalingKind::kLlama3, .factor = 4, .original_seq_length = 16};
}
inline void dynamic_positions(TrainConfig& c) {
  c.model.rope_scaling = {.kind = RopeScalingKind::kDynamic, .factor = 4, .original_seq_length = 16};
}
inline void attention_dropout(TrainConfig& c) { c.model.attention_dropout = 0.1; }
inline void window(TrainConfig& c) { c.model.window_size = c.model.seq_length / 3; }
inline void some_windows(TrainConfig& c) {
  window(c);
  c.model.window_layers = {.skip_freq = 2};
  c.model.local_rope_theta = 50;
}
inline void smollm3(TrainConfig& c) {
  c.model.num_query_groups = 4;
  c.model.rope_layers = {.skip_freq = 2};
}
inline void nemotron(TrainConfig& c) {
  c.model.rotary_percent = 0.5;
  c.model.norm = NormKind::kLayerNorm;
  c.model.norm_1p = true;
  c.model.activation = ActivationKind::kSquaredRelu;
}
inline void olmo2(TrainConfig& c) {
  c.model.num_query_groups = 4;
  c.model.norm_placement = NormPlacement::kBehind;
  c.model.qk_norm = true;
  c.model.qk_norm_width = QkNormWidth::kAllHeads;
}
inline void gemma2(TrainConfig& c) {
  c.model.num_query_groups = 4;
  c.model.norm_placement = NormPlacement::kBoth;
  c.model.norm_1p = c.model.scale_embeddings = c.model.tie_embeddings = true;
  c.model.activation = ActivationKind::kGeGlu;
  c.model.query_pre_attn_scalar = 5;
  c.model.attn_logit_softcapping = 0.5;
  c.model.final_logit_softcapping = 0.7;
  c.model.window_size = 3;
  c.model.window_layers = {.skip_freq = 2};
}
inline void granite(TrainConfig& c) {
  c.model.embedding_multiplier = 12;
  c.model.residual_multiplier = 0.22;
  c.model.logit_scale = 0.125;
}
inline void cohere(TrainConfig& c) {
  c.model.norm = NormKind::kLayerNorm;
  c.model.norm_bias = false;
  c.model.residual_form = ResidualForm::kParallelOneNorm;
  c.model.logit_scale = 0.5;
}
inline void gpt_neox(TrainConfig& c) {
  c.model.rotary_percent = 0.5;
  c.model.norm = NormKind::kLayerNorm;
  c.model.activation = ActivationKind::kGeluErf;
  c.model.add_bias = true;
  c.model.residual_form = ResidualForm::kParallel;
}
inline void phi2(TrainConfig& c) {
  c.model.vocab_size = 301;  // a bias with padding
  c.model.norm = NormKind::kLayerNorm;
  c.model.activation = ActivationKind::kGelu;
  c.model.add_bias = c.model.add_head_bias = true;
  c.model.residual_form = ResidualForm::kParallelOneNorm;
}
inline void long_rope(TrainConfig& c) {
  const auto pairs = static_cast<size_t>(c.model.head_dim() / 2);
  c.model.rope_scaling = {.kind = RopeScalingKind::kLongRope,
                          .factor = 4,
                          .original_seq_length = 16,
                          .short_factors = std::vector<double>(pairs, 1.5),
                          .long_factors = std::vector<double>(pairs, 6)};
}
// The weight of a single expert is 1.
template <int kEp>
inline void top1_experts(TrainConfig& c) {
  c.model.moe = {.num_experts = 8,
                 .topk = 1,
                 .ffn_hidden_size = 48,
                 .normalize_top1 = true,
                 .balancing = LoadBalancing::kAuxLoss,
                 .aux_loss_coeff = 1e-3,
                 .force_balance = true};
  c.parallel.ep = kEp;
}
template <int kEp>
inline void qwen_experts(TrainConfig& c) {
  qwen(c);
  over_ep<kEp>(c);
  c.model.moe = {.num_experts = 8,
                 .topk = 2,
                 .ffn_hidden_size = 48,
                 .shared_ffn_hidden_size = 32,
                 .shared_gate = true,
                 .balancing = LoadBalancing::kAuxLoss,
                 .aux_loss_coeff = 1e-3,
                 .force_balance = true};
}
template <int kEp>
inline void qwen_experts_in_two_stages(TrainConfig& c) {
  qwen_experts<kEp>(c);
  c.model.add_bias = true;
  c.parallel.pp = 2;
  c.model.num_layers = 4;
}

template <int kEp>
inline void gpt_oss(TrainConfig& c) {
  over_ep<kEp>(c);
  c.model.num_query_groups = 4;
  c.model.moe = {.num_experts = 8, .topk = 2, .ffn_hidden_size = 32, .router_bias = true, .force_balance = true};
  c.model.activation = ActivationKind::kSwiGluOai;
  c.model.softmax = SoftmaxKind::kLearnable;
  c.model.add_bias = true;
  c.model.window_size = 6;
  c.model.window_layers = {.skip_freq = 2};
}

inline void mamba(TrainConfig& c) {
  constexpr const char* kLetters = "M*-M";
  for (int64_t layer = 0; layer < c.model.num_layers; ++layer) c.model.hybrid_pattern += kLetters[layer % 4];
  c.model.mamba = {.num_heads = 16, .head_dim = 8, .state_dim = 4, .num_groups = 8};
}

inline void delta_net(TrainConfig& c) {
  c.model.linear = {.kind = LinearAttentionKind::kGatedDeltaNet,
                    .layers = {.skip_freq = 2},
                    .num_key_heads = 8,
                    .num_value_heads = 16,
                    .key_head_dim = 8,
                    .value_head_dim = 4};
  c.model.attention_output_gate = true;
}

template <int kEp>
inline void llama4(TrainConfig& c) {
  over_ep<kEp>(c);
  c.model.num_query_groups = 4;
  c.model.rope_layers = c.model.window_layers = {.skip_freq = 2};
  c.model.attention_chunk = c.model.seq_length / 3;
  c.model.qk_l2_norm = true;
  c.model.query_temperature_scale = 0.3;
  c.model.query_temperature_floor = 4;
  c.model.moe = {.num_experts = 8,
                 .topk = 1,
                 .ffn_hidden_size = 32,
                 .shared_ffn_hidden_size = 32,
                 .layers = {.pattern = {false, true}},
                 .score = RouterScore::kSigmoid,
                 .normalize_topk = false,
                 .weigh_inputs = true,
                 .force_balance = true};
}

inline void latent(TrainConfig& c) {
  c.model.mla = {.q_lora_rank = 24, .kv_lora_rank = 16, .qk_head_dim = 8, .qk_pos_emb_head_dim = 4, .v_head_dim = 12};
}
inline void latent_without_q_compression(TrainConfig& c) {
  latent(c);
  c.model.mla.q_lora_rank = 0;
}
inline void predicting(TrainConfig& c) {
  c.model.mtp_num_layers = 2;
  c.model.mtp_loss_weight = 0.3;
}
inline void predicting_with_one_module(TrainConfig& c) {
  predicting(c);
  c.model.mtp_use_repeated_layer = true;
}
template <int kEp>
inline void deepseek(TrainConfig& c) {
  latent(c);
  predicting(c);
  over_ep<kEp>(c);
}
template <int kEp>
inline void deepseek_in_two_stages(TrainConfig& c) {
  deepseek<kEp>(c);
  c.parallel.pp = 2;
  c.model.num_layers = 3;
}
inline void deepseek_zb_v(TrainConfig& c) {
  deepseek_in_two_stages<2>(c);
  c.model.num_layers = 4;
  c.pipeline_schedule = "zb-v";
}

}  // namespace ranklab
