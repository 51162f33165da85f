#include "core/spec/presets.h"

#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

ModelConfig gpt2_124m() {
  return {.num_layers = 12,
          .hidden_size = 768,
          .ffn_hidden_size = 3072,
          .num_attention_heads = 12,
          .vocab_size = 50257,
          .seq_length = 1024,
          .norm = NormKind::kLayerNorm,
          .position = PositionKind::kLearned,
          .activation = ActivationKind::kGelu,
          .dropout = 0.1,
          .add_bias = true,
          .tie_embeddings = true};
}

// Its table 2.1, but for the sparse attention of every other layer.
ModelConfig gpt_3b() {
  ModelConfig c = gpt2_124m();
  c.num_layers = 32;
  c.hidden_size = 2560;
  c.ffn_hidden_size = 10240;
  c.num_attention_heads = 32;
  c.seq_length = 2048;
  c.dropout = 0;
  return c;
}

// Trained on 8192 positions, then with scaled rotary frequencies: by 8 in Llama 3.1, by 32 in 3.2
// (huggingface.co/meta-llama/Llama-3.1-8B and Llama-3.2-1B, config.json).
ModelConfig llama(int64_t layers, int64_t hidden, int64_t ffn, double stretch, bool tied) {
  return {.num_layers = layers,
          .hidden_size = hidden,
          .ffn_hidden_size = ffn,
          .num_attention_heads = 32,
          .num_query_groups = 8,
          .vocab_size = 128256,
          .seq_length = 8192,
          .rope_theta = 500000.0,
          .tie_embeddings = tied,
          .rope_scaling = {.kind = RopeScalingKind::kLlama3, .factor = stretch}};
}

ModelConfig llama_70b() {
  ModelConfig c = llama(80, 8192, 28672, 8, false);
  c.num_attention_heads = 64;
  return c;
}

ModelConfig tinytron(int64_t layers, int64_t heads, int64_t groups, int64_t hidden, int64_t ffn) {
  return {.num_layers = layers,
          .hidden_size = hidden,
          .ffn_hidden_size = ffn,
          .num_attention_heads = heads,
          .num_query_groups = groups,
          .vocab_size = 50304,
          .seq_length = 4096,
          .tie_embeddings = true};
}

// scripts/debug_gpt_0.3b_a0.17b there, whose name counts otherwise.
ModelConfig moe_03b_a017b() {
  ModelConfig c = tinytron(12, 32, 4, 768, 3072);
  c.moe = {.num_experts = 8, .topk = 2, .ffn_hidden_size = 768};
  return c;
}

ModelConfig peer(int64_t hidden, int64_t ffn, int64_t vocab, int64_t seq) {
  return {.num_layers = 8,
          .hidden_size = hidden,
          .ffn_hidden_size = ffn,
          .num_attention_heads = 8,
          .vocab_size = vocab,
          .seq_length = seq};
}

// The width and heads of nanoGPT's model of characters. Its head costs as much as a layer (vocabulary 4096), so two
// stages of a pipeline are equal.
ModelConfig gpt_10m() {
  return {.num_layers = 5,
          .hidden_size = 384,
          .ffn_hidden_size = 1024,
          .num_attention_heads = 6,
          .vocab_size = 4096,
          .seq_length = 256,
          .tie_embeddings = true};
}

// huggingface.co/deepseek-ai/DeepSeek-V3/config.json; trained on sequences of 4096 (arXiv 2412.19437, section 4.2),
// then extended with YaRN.
ModelConfig deepseek_v3() {
  return {.num_layers = 61,
          .hidden_size = 7168,
          .ffn_hidden_size = 18432,
          .num_attention_heads = 128,
          .vocab_size = 129280,
          .seq_length = 4096,
          .norm_epsilon = 1e-6,
          .init_std = 0.006,
          .mla = {.q_lora_rank = 1536,
                  .kv_lora_rank = 512,
                  .qk_head_dim = 128,
                  .qk_pos_emb_head_dim = 64,
                  .v_head_dim = 128},
          .yarn = {.scaling_factor = 40},
          .moe = {.num_experts = 256,
                  .topk = 8,
                  .ffn_hidden_size = 2048,
                  .shared_ffn_hidden_size = 2048,
                  .first_dense_layers = 3,
                  .score = RouterScore::kSigmoid,
                  .num_groups = 8,
                  .group_topk = 4,
                  .scaling_factor = 2.5,
                  .balancing = LoadBalancing::kSeqAuxLoss,
                  .aux_loss_coeff = 1e-4,
                  .expert_bias = true},
          .mtp_num_layers = 1,
          .mtp_loss_weight = 0.3};
}

// A small version: the sizes of nano-train's train_4d.
ModelConfig deepseek_v3_tiny() {
  ModelConfig c = deepseek_v3();
  c.num_layers = 5;
  c.hidden_size = 128;
  c.ffn_hidden_size = 256;
  c.num_attention_heads = 8;
  c.vocab_size = 256;
  c.seq_length = 128;
  c.init_std = 0.02;
  c.mla = {.q_lora_rank = 64, .kv_lora_rank = 32, .qk_head_dim = 8, .qk_pos_emb_head_dim = 8, .v_head_dim = 8};
  c.yarn.original_seq_length = 64;
  c.yarn.scaling_factor = 2;
  c.moe.num_experts = 8;
  c.moe.topk = 2;
  c.moe.ffn_hidden_size = 128;
  c.moe.shared_ffn_hidden_size = 128;
  c.moe.first_dense_layers = 1;
  c.moe.num_groups = 4;
  c.moe.group_topk = 2;
  c.moe.bias_update_rate = 0.01;  // larger, since runs are short
  return c;
}

// huggingface.co/Qwen/Qwen3-*/config.json; trained mostly on sequences of 4096 (arXiv 2505.09388, section 3.2).
ModelConfig qwen3(int64_t layers, int64_t hidden, int64_t ffn, int64_t heads, int64_t groups) {
  return {.num_layers = layers,
          .hidden_size = hidden,
          .ffn_hidden_size = ffn,
          .num_attention_heads = heads,
          .num_query_groups = groups,
          .kv_channels = 128,
          .vocab_size = 151936,
          .seq_length = 4096,
          .norm_epsilon = 1e-6,
          .rope_theta = 1e6,
          .qk_norm = true};
}

ModelConfig qwen3_0_6b() {
  ModelConfig c = qwen3(28, 1024, 3072, 16, 8);
  c.tie_embeddings = true;
  return c;
}

// Expert load is balanced over the global batch (section 2).
ModelConfig qwen3_30b_a3b() {
  ModelConfig c = qwen3(48, 2048, 6144, 32, 4);
  c.moe = {.num_experts = 128,
           .topk = 8,
           .ffn_hidden_size = 768,
           .balancing = LoadBalancing::kGlobalAuxLoss,
           .aux_loss_coeff = 1e-3};
  return c;
}

ModelConfig qwen3_moe_tiny() {
  ModelConfig c = qwen3_30b_a3b();
  c.num_layers = 4;
  c.hidden_size = 128;
  c.ffn_hidden_size = 352;
  c.num_attention_heads = 8;
  c.num_query_groups = 4;
  c.kv_channels = 32;
  c.vocab_size = 256;
  c.seq_length = 128;
  c.rope_theta = 10000;
  c.moe.num_experts = 8;
  c.moe.topk = 2;
  c.moe.ffn_hidden_size = 128;
  return c;
}

// huggingface.co/allenai/OLMo-2-1124-7B/config.json
ModelConfig olmo2_7b() {
  return {.num_layers = 32,
          .hidden_size = 4096,
          .ffn_hidden_size = 11008,
          .num_attention_heads = 32,
          .vocab_size = 100352,
          .seq_length = 4096,
          .norm_epsilon = 1e-6,
          .norm_placement = NormPlacement::kBehind,
          .rope_theta = 500000.0,
          .qk_norm = true,
          .qk_norm_width = QkNormWidth::kAllHeads};
}

// Nemotron-4 15B; arXiv 2402.16819 table 1 and section 2
ModelConfig nemotron4_15b() {
  return {.num_layers = 32,
          .hidden_size = 6144,
          .ffn_hidden_size = 24576,
          .num_attention_heads = 48,
          .num_query_groups = 8,
          .vocab_size = 256000,
          .seq_length = 4096,
          .norm = NormKind::kLayerNorm,
          .activation = ActivationKind::kSquaredRelu,
          .norm_1p = true,
          .rotary_percent = 0.5,
          .init_std = 0.0134};
}

// huggingface.co/HuggingFaceTB/SmolLM3-3B/config.json
ModelConfig smollm3_3b() {
  return {.num_layers = 36,
          .hidden_size = 2048,
          .ffn_hidden_size = 11008,
          .num_attention_heads = 16,
          .num_query_groups = 4,
          .vocab_size = 128256,
          .seq_length = 4096,
          .norm_epsilon = 1e-6,
          .rope_theta = 50000.0,
          .rope_layers = {.skip_freq = 4},
          .tie_embeddings = true};
}

// huggingface.co/openai/gpt-oss-20b/config.json, and -120b's; YaRN from 4096 positions to 131072
ModelConfig gpt_oss(int64_t layers, int64_t experts) {
  return {.num_layers = layers,
          .hidden_size = 2880,
          .ffn_hidden_size = 2880,
          .num_attention_heads = 64,
          .num_query_groups = 8,
          .kv_channels = 64,
          .vocab_size = 201088,
          .seq_length = 4096,
          .activation = ActivationKind::kSwiGluOai,
          .rope_theta = 150000.0,
          .window_size = 128,
          .window_layers = {.skip_freq = 2},
          .add_bias = true,
          .softmax = SoftmaxKind::kLearnable,
          .yarn = {.scaling_factor = 32, .mscale_all_dim = 0, .truncate = false},
          .moe = {.num_experts = experts, .topk = 4, .router_bias = true}};
}

// GLM-4.5-Air; arXiv 2508.06471 table 1, huggingface.co/zai-org/GLM-4.5-Air/config.json
ModelConfig glm4_5_air() {
  return {.num_layers = 46,
          .hidden_size = 4096,
          .ffn_hidden_size = 10944,
          .num_attention_heads = 96,
          .num_query_groups = 8,
          .kv_channels = 128,
          .vocab_size = 151552,
          .seq_length = 4096,
          .rope_theta = 1e6,
          .rotary_percent = 0.5,
          .add_qkv_bias = true,
          .moe = {.num_experts = 128,
                  .topk = 8,
                  .ffn_hidden_size = 1408,
                  .shared_ffn_hidden_size = 1408,
                  .first_dense_layers = 1,
                  .score = RouterScore::kSigmoid,
                  .expert_bias = true},
          .mtp_num_layers = 1};
}

// GLM-4.5; the same places
ModelConfig glm4_5() {
  ModelConfig c = glm4_5_air();
  c.num_layers = 92;
  c.hidden_size = 5120;
  c.ffn_hidden_size = 12288;
  c.qk_norm = true;
  c.moe.num_experts = 160;
  c.moe.ffn_hidden_size = c.moe.shared_ffn_hidden_size = 1536;
  c.moe.first_dense_layers = 3;
  c.moe.scaling_factor = 2.5;
  return c;
}

// What Gemma 2 and 3 share; heads are wider than hidden_size / num_attention_heads.
ModelConfig gemma(int64_t hidden, int64_t ffn, int64_t heads, int64_t groups, int64_t vocab, int64_t seq) {
  return {.num_layers = 26,
          .hidden_size = hidden,
          .ffn_hidden_size = ffn,
          .num_attention_heads = heads,
          .num_query_groups = groups,
          .kv_channels = 256,
          .vocab_size = vocab,
          .seq_length = seq,
          .activation = ActivationKind::kGeGlu,
          .norm_epsilon = 1e-6,
          .norm_placement = NormPlacement::kBoth,
          .norm_1p = true,
          .tie_embeddings = true,
          .scale_embeddings = true};
}

ModelConfig gemma2_2b() {
  ModelConfig c = gemma(2304, 9216, 8, 4, 256000, 8192);
  c.window_size = 4096;
  c.window_layers = {.skip_freq = 2};
  c.attn_logit_softcapping = 50;
  c.final_logit_softcapping = 30;
  return c;
}

ModelConfig gemma3_1b() {
  ModelConfig c = gemma(1152, 6912, 4, 1, 262144, 32768);
  c.rope_theta = 1e6;
  c.local_rope_theta = 1e4;
  c.window_size = 512;
  c.window_layers = {.skip_freq = 6};
  c.qk_norm = true;
  return c;
}

}  // namespace

const std::vector<ModelPreset>& model_presets() {
  static const std::vector<ModelPreset> kPresets = {
      {"gpt_tiny", "ranklab's default: bytes, trains on a laptop in a minute", ModelConfig{}},
      {"gpt_10m", "the run of examples/runs: a tokenizer of 4096 tokens, an hour of CPU", gpt_10m()},
      {"gpt2_124m", "Radford et al. 2019; huggingface.co/openai-community/gpt2", gpt2_124m()},
      {"gpt_3b", "GPT-3 2.7B; arXiv 2005.14165 table 2.1", gpt_3b()},
      {"llama_1b", "Llama 3.2 1B; huggingface.co/meta-llama/Llama-3.2-1B", llama(16, 2048, 8192, 32, true)},
      {"llama_8b", "Llama 3.1 8B; arXiv 2407.21783 table 3", llama(32, 4096, 14336, 8, false)},
      {"llama_70b", "Llama 3.1 70B; arXiv 2407.21783 table 3", llama_70b()},
      {"deepseek_v3", "DeepSeek-V3, 671B of which 37B active; arXiv 2412.19437", deepseek_v3()},
      {"deepseek_v3_tiny", "DeepSeek-V3 in small: latent attention, 8 experts, MTP", deepseek_v3_tiny()},
      {"qwen3_0.6b", "Qwen3 0.6B; huggingface.co/Qwen/Qwen3-0.6B", qwen3_0_6b()},
      {"qwen3_8b", "Qwen3 8B; huggingface.co/Qwen/Qwen3-8B", qwen3(36, 4096, 12288, 32, 8)},
      {"qwen3_30b_a3b", "Qwen3 30B, of which 3B active; huggingface.co/Qwen/Qwen3-30B-A3B", qwen3_30b_a3b()},
      {"qwen3_moe_tiny", "Qwen3 with experts in small: heads wider than hidden / heads", qwen3_moe_tiny()},
      {"olmo2_7b", "OLMo 2 7B; huggingface.co/allenai/OLMo-2-1124-7B", olmo2_7b()},
      {"gemma2_2b", "Gemma 2 2B; huggingface.co/google/gemma-2-2b", gemma2_2b()},
      {"gemma3_1b", "Gemma 3 1B; huggingface.co/google/gemma-3-1b-pt", gemma3_1b()},
      {"smollm3_3b", "SmolLM 3 3B, as it begins; huggingface.co/HuggingFaceTB/SmolLM3-3B", smollm3_3b()},
      {"nemotron4_15b", "Nemotron-4 15B; arXiv 2402.16819", nemotron4_15b()},
      {"glm4_5_air", "GLM-4.5-Air; arXiv 2508.06471", glm4_5_air()},
      {"glm4_5", "GLM-4.5; arXiv 2508.06471", glm4_5()},
      {"gpt_oss_20b", "gpt-oss 20B; huggingface.co/openai/gpt-oss-20b", gpt_oss(24, 32)},
      {"gpt_oss_120b", "gpt-oss 120B; huggingface.co/openai/gpt-oss-120b", gpt_oss(36, 128)},
      {"tinytron_0.25b", "github.com/liangyuwang/Tinytron README", tinytron(12, 32, 4, 1024, 4096)},
      {"tinytron_1b", "github.com/liangyuwang/Tinytron README", tinytron(24, 64, 8, 2048, 8192)},
      {"tinytron_7b", "github.com/liangyuwang/Tinytron README", tinytron(32, 128, 16, 4096, 16384)},
      {"moe_0.3b_a0.17b", "github.com/liangyuwang/Tinytron scripts: 8 experts, two a token", moe_03b_a017b()},
      {"peer_s", "the S model of ./ranklab bench train", peer(128, 352, 256, 128), 32},
      {"peer_m", "the M model of ./ranklab bench train", peer(512, 1408, 8192, 256), 16},
  };
  return kPresets;
}

const ModelConfig& model_preset(const std::string& name) { return find_model_preset(name).config; }

const ModelPreset& find_model_preset(const std::string& name) {
  std::vector<std::string> names;
  for (const ModelPreset& preset : model_presets()) {
    if (preset.name == name) return preset;
    names.push_back(preset.name);
  }
  const std::string nearest = nearest_name(name, names);
  throw Error(ErrorKind::kInvalidArgument,
              {.where = "model presets",
               .what = "no such preset",
               .got = quote(name),
               .want = "one of " + join(names, ", "),
               .fix = nearest.empty() ? "see: ranklab list presets" : "did you mean " + quote(nearest) + "?"});
}

}  // namespace ranklab
