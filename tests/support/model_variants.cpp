#include "tests/support/model_variants.h"

#include <algorithm>
#include <stdexcept>

namespace ranklab {
namespace {

void learned_positions(ModelConfig& c) {
  c.norm = NormKind::kLayerNorm;
  c.position = PositionKind::kLearned;
  c.activation = ActivationKind::kGelu;
  c.add_bias = true;
  c.tie_embeddings = true;
  c.dropout = 0.2;
}
void tied_bias_dropout(ModelConfig& c) {
  c.tie_embeddings = true;
  c.add_bias = true;
  c.dropout = 0.1;
}
void latent(ModelConfig& c) {
  c.mla = {.q_lora_rank = 16, .kv_lora_rank = 12, .qk_head_dim = 4, .qk_pos_emb_head_dim = 4, .v_head_dim = 8};
}
void latent_mtp(ModelConfig& c) {
  c.mla = {.q_lora_rank = 10, .kv_lora_rank = 6, .qk_head_dim = 6, .qk_pos_emb_head_dim = 4, .v_head_dim = 5};
  c.yarn = {.scaling_factor = 2, .original_seq_length = 16};
  c.mtp_num_layers = 2;
  c.mtp_loss_weight = 0.7;
  c.dropout = 0.1;
}
// Without query compression; the embedding is used three times.
void latent_tied(ModelConfig& c) {
  c.mla = {.kv_lora_rank = 6, .qk_head_dim = 4, .qk_pos_emb_head_dim = 4, .v_head_dim = 8};
  c.mtp_num_layers = 1;
  c.tie_embeddings = true;
}
// Latent attention with features of other models.
void latent_with_all(ModelConfig& c) {
  latent(c);
  c.norm = NormKind::kLayerNorm;
  c.add_bias = c.rotary_interleaved = true;
  c.dropout = 0.1;
  c.window_size = 3;
  c.window_layers = {.skip_freq = 2};
  c.local_rope_theta = 20;
  c.query_pre_attn_scalar = 5;
  c.attn_logit_softcapping = 0.5;
  c.softmax = SoftmaxKind::kLearnable;
}
void latent_learned_positions(ModelConfig& c) {
  latent(c);
  c.mla.q_lora_rank = 0;
  c.position = PositionKind::kLearned;
  c.add_attention_bias = true;
}
void qwen(ModelConfig& c) {
  c.num_query_groups = c.num_attention_heads / 2;
  c.kv_channels = 3 * c.head_dim();
  c.add_qkv_bias = true;
  c.qk_norm = true;
}
// One key/value head, of which all tp ranks project parts.
void one_key_head(ModelConfig& c) {
  c.num_query_groups = 1;
  c.kv_channels = std::max(c.num_attention_heads, c.head_dim());
  c.add_qkv_bias = true;
  c.qk_norm = true;
}
void llama3(ModelConfig& c) {
  c.num_query_groups = c.num_attention_heads / 2;
  c.kv_channels = std::max<int64_t>(6, c.head_dim());
  c.add_attention_bias = true;
  c.window_size = c.seq_length / 3 + 1;
  c.rope_scaling = {.kind = RopeScalingKind::kLlama3,
                    .factor = 4,
                    .original_seq_length = c.seq_length + 2,
                    .low_freq_factor = 0.1,
                    .high_freq_factor = 1};
}
void dynamic_positions(ModelConfig& c) {
  c.kv_channels = std::max<int64_t>(8, c.head_dim());
  c.rotary_percent = 0.5;
  c.rope_scaling = {.kind = RopeScalingKind::kDynamic, .factor = 3, .original_seq_length = c.seq_length / 2};
}

void some_windows(ModelConfig& c) {
  c.num_query_groups = c.num_attention_heads / 2;
  c.window_size = 3;
  c.window_layers = {.pattern = {false, true}};
  c.local_rope_theta = 20;
  c.rope_scaling = {.kind = RopeScalingKind::kLinear, .factor = 4};
}
// Some layers have no positions; one of these has a window.
void smollm3(ModelConfig& c) {
  c.num_query_groups = c.num_attention_heads / 2;
  c.rope_layers = {.pattern = {true, false, false}};
  c.window_size = 3;
  c.window_layers = {.skip_freq = 3};
  c.yarn = {.scaling_factor = 2, .original_seq_length = 8, .mscale_all_dim = 0};
}
void nemotron(ModelConfig& c) {
  c.kv_channels = std::max<int64_t>(4, c.head_dim());
  c.rotary_percent = 0.5;
  c.norm = NormKind::kLayerNorm;
  c.norm_1p = true;
  c.activation = ActivationKind::kSquaredRelu;
}
// What Granite has, with dropout and a prediction module.
void multipliers(ModelConfig& c) {
  c.num_query_groups = c.num_attention_heads / 2;
  c.dropout = 0.1;
  c.tie_embeddings = true;
  c.embedding_multiplier = 12;
  c.residual_multiplier = 0.22;
  c.logit_scale = 0.125;
  c.mtp_num_layers = 1;
}
void cohere2(ModelConfig& c) {
  c.norm = NormKind::kLayerNorm;
  c.norm_bias = false;
  c.residual_form = ResidualForm::kParallelOneNorm;
  c.logit_scale = 0.5;
  c.window_size = 3;
  c.window_layers = c.rope_layers = {.skip_freq = 2};
}
void latent_without_positions(ModelConfig& c) {
  latent(c);
  c.position = PositionKind::kNone;
}
void olmo2(ModelConfig& c) {
  c.num_query_groups = c.num_attention_heads / 2;
  c.dropout = 0.1;
  c.norm_placement = NormPlacement::kBehind;
  c.qk_norm = true;
  c.qk_norm_width = QkNormWidth::kAllHeads;
}
// Ranks that share a key/value head normalize parts of it.
void olmo2_one_key_head(ModelConfig& c) {
  c.num_query_groups = 1;
  c.kv_channels = std::max(c.num_attention_heads, c.head_dim());
  c.add_attention_bias = true;
  c.norm_placement = NormPlacement::kBehind;
  c.qk_norm = true;
  c.qk_norm_width = QkNormWidth::kAllHeads;
}
void norms_before_and_behind(ModelConfig& c) {
  c.norm_placement = NormPlacement::kBoth;
  c.norm = NormKind::kLayerNorm;
  c.kv_channels = 3 * c.head_dim();
  c.qk_norm = true;
  c.mtp_num_layers = 1;
}
void gemma(ModelConfig& c) {
  c.norm_placement = NormPlacement::kBoth;
  c.norm_1p = c.scale_embeddings = c.tie_embeddings = true;
  c.activation = ActivationKind::kGeGlu;
  c.window_size = 3;
  c.window_layers = {.skip_freq = 2};
}
void gemma2(ModelConfig& c) {
  gemma(c);
  c.num_query_groups = c.num_attention_heads / 2;
  c.dropout = 0.1;
  c.query_pre_attn_scalar = 5;
  c.attn_logit_softcapping = 0.5;
  c.final_logit_softcapping = 0.7;
}
void gemma3(ModelConfig& c) {
  gemma(c);
  c.num_query_groups = 1;
  c.kv_channels = std::max(c.num_attention_heads, c.head_dim());
  c.qk_norm = true;
  c.local_rope_theta = 20;
}
void gpt_neox(ModelConfig& c) {
  c.kv_channels = std::max<int64_t>(8, c.head_dim());
  c.rotary_percent = 0.25;
  c.dropout = 0.1;
  c.norm = NormKind::kLayerNorm;
  c.activation = ActivationKind::kGeluErf;
  c.add_bias = true;
  c.residual_form = ResidualForm::kParallel;
}
void phi2(ModelConfig& c) {
  c.num_query_groups = c.num_attention_heads / 2;
  c.tie_embeddings = true;
  c.norm = NormKind::kLayerNorm;
  c.activation = ActivationKind::kGelu;
  c.add_bias = c.add_head_bias = true;
  c.residual_form = ResidualForm::kParallelOneNorm;
}
void parallel_without_norms_before(ModelConfig& c) {
  c.residual_form = ResidualForm::kParallelOneNorm;
  c.norm_placement = NormPlacement::kBehind;
}
void parallel_norms_behind(ModelConfig& c) {
  c.residual_form = ResidualForm::kParallel;
  c.norm_placement = NormPlacement::kBehind;
  c.mtp_num_layers = 1;
  c.add_head_bias = true;
  c.softmax = SoftmaxKind::kOffByOne;
}
void long_rope(ModelConfig& c) {
  c.kv_channels = 8;
  c.rotary_percent = 0.5;
  c.rope_scaling = {.kind = RopeScalingKind::kLongRope,
                    .factor = 4,
                    .original_seq_length = 4,
                    .short_factors = {1, 2},
                    .long_factors = {1.5, 6}};
}

void experts(ModelConfig& c) {
  c.moe = {.num_experts = 8, .topk = 2, .ffn_hidden_size = 16, .shared_ffn_hidden_size = 16, .first_dense_layers = 1};
}
void deepseek_experts(ModelConfig& c) {
  experts(c);
  c.moe.score = RouterScore::kSigmoid;
  c.moe.num_groups = 4;
  c.moe.group_topk = 2;
  c.moe.scaling_factor = 2.5;
  c.moe.balancing = LoadBalancing::kSeqAuxLoss;
  c.moe.aux_loss_coeff = 0.05;
  c.moe.expert_bias = true;
  c.moe.bias_update_rate = 0.02;
}
void deepseek(ModelConfig& c) {
  deepseek_experts(c);
  c.mla = {.q_lora_rank = 16, .kv_lora_rank = 8, .qk_head_dim = 8, .qk_pos_emb_head_dim = 4, .v_head_dim = 8};
  c.yarn = {.scaling_factor = 2, .original_seq_length = 8};
  c.mtp_num_layers = 1;
  c.mtp_loss_weight = 0.3;
}
void qwen_experts(ModelConfig& c) {
  qwen(c);
  experts(c);
  c.moe.first_dense_layers = 0;
  c.moe.shared_gate = true;
  c.moe.balancing = LoadBalancing::kAuxLoss;
  c.moe.aux_loss_coeff = 0.1;
}
// Layers with positions attend within chunks; in layers without, queries are scaled up with the position.
void chunks(ModelConfig& c) {
  c.num_query_groups = c.num_attention_heads / 2;
  c.rope_layers = c.window_layers = {.pattern = {true, false}};
  c.attention_chunk = c.seq_length / 3;
  c.qk_l2_norm = true;
  c.query_temperature_scale = 0.4;
  c.query_temperature_floor = 3;
}
// Every layer has chunks and scaled queries; the window is shorter than some chunks.
void latent_chunks(ModelConfig& c) {
  latent(c);
  c.position = PositionKind::kNone;
  c.window_size = c.attention_chunk = c.seq_length / 2 - 1;
  c.window_layers = {.pattern = {true, false}};
  c.query_temperature_scale = 0.4;
  c.query_temperature_floor = 2;
}
// The convolution is longer than some parts of a sequence.
void delta_net(ModelConfig& c) {
  const int64_t heads = c.num_attention_heads;
  c.linear = {LinearAttentionKind::kGatedDeltaNet, {.pattern = {true, false}}, heads, 2 * heads, 5, 3, 6};
  c.add_bias = true;
  c.dropout = 0.1;
}
void output_gate(ModelConfig& c) {
  c.num_query_groups = c.num_attention_heads / 2;
  c.attention_output_gate = c.add_qkv_bias = c.qk_norm = true;
}
void qwen3_next(ModelConfig& c) {
  experts(c), output_gate(c), delta_net(c);
  c.moe.shared_gate = c.norm_1p = true;
  c.moe.first_dense_layers = 0;
  c.rotary_percent = 0.5;
}
// One mixer per layer, given by letters that repeat for any number of layers.
void mixers(ModelConfig& c, const std::string& letters) {
  c.hybrid_pattern.clear();
  for (int64_t layer = 0; layer < c.num_layers; ++layer)
    c.hybrid_pattern += letters[static_cast<size_t>(layer) % letters.size()];
  const int64_t groups = c.num_attention_heads;
  c.mamba = {.num_heads = 2 * groups, .head_dim = 3, .state_dim = 5, .num_groups = groups, .conv_kernel = 6};
}
void mamba(ModelConfig& c) {
  mixers(c, "M*-M");
  c.num_query_groups = c.num_attention_heads / 2;
  c.position = PositionKind::kNone;
  c.activation = ActivationKind::kSquaredRelu;
  c.dropout = 0.1;
}
// No layer has attention.
void mamba_alone(ModelConfig& c) {
  mixers(c, "M");
  c.mamba.min_step = 0.03;
  c.add_bias = c.tie_embeddings = true;
}
void nemotron_h(ModelConfig& c) {
  experts(c);
  mixers(c, "ME*-");
  c.activation = ActivationKind::kSquaredRelu;
  c.moe.score = RouterScore::kSigmoid;
  c.moe.expert_bias = true;
}
void llama4(ModelConfig& c) {
  experts(c);
  chunks(c);
  c.moe.first_dense_layers = 0;
  c.moe.layers = {.pattern = {false, true}};
  c.moe.topk = 1;
  c.moe.score = RouterScore::kSigmoid;
  c.moe.normalize_topk = false;
  c.moe.weigh_inputs = true;
  c.moe.balancing = LoadBalancing::kAuxLoss;
  c.moe.aux_loss_coeff = 0.1;
}
void gpt_oss(ModelConfig& c) {
  experts(c);
  c.num_query_groups = c.num_attention_heads / 2;
  c.kv_channels = 3 * c.head_dim();
  c.moe.shared_ffn_hidden_size = c.moe.first_dense_layers = 0;
  c.moe.router_bias = c.add_bias = true;
  c.activation = ActivationKind::kSwiGluOai;
  c.softmax = SoftmaxKind::kLearnable;
  c.window_size = 3;
  c.window_layers = {.skip_freq = 2};
  c.yarn = {.scaling_factor = 2, .original_seq_length = 8, .mscale_all_dim = 0, .truncate = false};
}
// Only the auxiliary loss trains the router.
void one_expert_a_token(ModelConfig& c) {
  experts(c);
  c.moe.topk = 1;
  c.moe.normalize_top1 = true;
  c.moe.balancing = LoadBalancing::kAuxLoss;
  c.moe.aux_loss_coeff = 0.1;
  c.add_attention_bias = true;
  c.window_size = c.seq_length / 3;
  c.yarn = {.scaling_factor = 2, .original_seq_length = 8, .mscale_all_dim = 0};
}

constexpr ModelVariant kDense[] = {
    {"llama_gqa", [](ModelConfig& c) { c.num_query_groups = c.num_attention_heads / 2; }},
    {"gpt2_dropout", learned_positions},
    {"tied_bias_dropout", tied_bias_dropout},
    {"latent_mtp", latent_mtp},
    {"repeated_mtp", [](ModelConfig& c) { latent_mtp(c), c.mtp_use_repeated_layer = true; }},
    {"latent", latent},
    {"latent_tied", latent_tied},
    {"latent_with_all", latent_with_all},
    {"latent_learned_positions", latent_learned_positions},
    {"qwen", qwen},
    {"one_key_head", one_key_head},
    {"llama3", llama3},
    {"dynamic_positions", dynamic_positions},
    {"some_windows", some_windows},
    {"smollm3", smollm3},
    {"nemotron", nemotron},
    {"latent_without_positions", latent_without_positions},
    {"olmo2", olmo2},
    {"olmo2_one_key_head", olmo2_one_key_head},
    {"norms_before_and_behind", norms_before_and_behind},
    {"gemma2", gemma2},
    {"gemma3", gemma3},
    {"gpt_neox", gpt_neox},
    {"phi2", phi2},
    {"gpt_j", [](ModelConfig& c) { phi2(c), c.kv_channels = 8, c.rotary_percent = 0.5, c.rotary_interleaved = true; }},
    {"multipliers", multipliers},
    {"cohere2", cohere2},
    {"parallel_norms_behind", parallel_norms_behind},
    {"parallel_without_norms_before", parallel_without_norms_before},
    {"long_rope", long_rope},
    {"chunks", chunks},
    {"latent_chunks", latent_chunks},
    {"delta_net", delta_net},
    {"mamba", mamba},
    {"mamba_alone", mamba_alone},
    {"output_gate", output_gate},
};

constexpr ModelVariant kExperts[] = {
    {"deepseek_experts", deepseek_experts},
    {"aux_z",
     [](ModelConfig& c) {
       experts(c);
       c.moe.balancing = LoadBalancing::kAuxLoss;
       c.moe.aux_loss_coeff = 0.1;
       c.moe.z_loss_coeff = 0.01;
       c.moe.normalize_topk = false;
     }},
    {"capacity",
     [](ModelConfig& c) {
       experts(c);
       c.moe.capacity_factor = 0.8;
       c.moe.topk = 3;
       c.add_bias = true;
     }},
    {"idle_experts",  // k = 1, and experts without any token
     [](ModelConfig& c) {
       experts(c);
       c.moe.topk = 1;
       c.moe.expert_bias = true;
       c.moe.bias_update_rate = 100;
     }},
    {"every_expert",
     [](ModelConfig& c) {
       experts(c);
       c.moe.topk = 8;
     }},
    {"deepseek", deepseek},
    {"deepseek_repeated_mtp",
     [](ModelConfig& c) {
       deepseek(c);
       c.mtp_num_layers = 2;
       c.mtp_use_repeated_layer = true;
     }},
    {"in_turn",
     [](ModelConfig& c) {
       experts(c);
       c.moe.force_balance = true;
     }},
    {"qwen_experts", qwen_experts},
    {"gelu_experts",
     [](ModelConfig& c) {
       experts(c);
       c.activation = ActivationKind::kGeluErf;
       c.add_bias = true;
     }},
    {"geglu_latent_experts",
     [](ModelConfig& c) {
       deepseek(c);
       c.activation = ActivationKind::kGeGlu;
       c.add_attention_bias = true;
       c.window_size = 5;
     }},
    {"one_expert_a_token", one_expert_a_token},
    {"latent_moe", [](ModelConfig& c) { deepseek_experts(c), c.moe.latent_size = 12; }},
    {"gpt_oss", gpt_oss},
    {"llama4", llama4},
    {"qwen3_next", qwen3_next},
    {"nemotron_h", nemotron_h},
};

}  // namespace

std::span<const ModelVariant> dense_variants() { return kDense; }
std::span<const ModelVariant> expert_variants() { return kExperts; }

const ModelVariant& variant_named(const std::string& name) {
  for (const std::span<const ModelVariant> rows : {dense_variants(), expert_variants()}) {
    const auto row = std::ranges::find(rows, name, [](const ModelVariant& v) { return std::string(v.name); });
    if (row != rows.end()) return *row;
  }
  throw std::out_of_range("no model variant " + name);
}

}  // namespace ranklab
