// Whole tiny models (Llama-like, GPT-2-like, DeepSeek-V3 with and without experts, Qwen3, Qwen2-MoE) against
// torch.nn.functional: logits, loss and every gradient.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/model/transformer.h"
#include "core/sim/aten.h"
#include "tests/golden/golden.h"
#include "tests/parallel/run_ranks.h"

namespace ranklab {
namespace {

using golden::relative_error;

ModelConfig tiny(bool llama) {
  ModelConfig c{.num_layers = 2,
                .hidden_size = 4,
                .ffn_hidden_size = 6,
                .num_attention_heads = 2,
                .num_query_groups = 1,
                .vocab_size = 7,
                .seq_length = 5,
                .rope_theta = 50.0};
  if (!llama) {
    c.num_query_groups = 0;
    c.norm = NormKind::kLayerNorm;
    c.position = PositionKind::kLearned;
    c.activation = ActivationKind::kGelu;
    c.add_bias = true;
    c.tie_embeddings = true;
  }
  return c;
}

// With latent attention and MTP; without experts also without query compression, and with values wider than keys.
ModelConfig tiny_deepseek(bool experts) {
  ModelConfig c{
      .num_layers = 2,
      .hidden_size = 6,
      .ffn_hidden_size = 5,
      .num_attention_heads = 2,
      .vocab_size = 7,
      .seq_length = 6,
      .norm_epsilon = 1e-6,
      .rope_theta = 50.0,
      .mla = {.q_lora_rank = 0, .kv_lora_rank = 5, .qk_head_dim = 3, .qk_pos_emb_head_dim = 4, .v_head_dim = 8},
      .yarn = {.scaling_factor = 3, .original_seq_length = 16, .beta_slow = 0.2},
      .mtp_num_layers = 1,
      .mtp_loss_weight = 0.3};
  if (!experts) return c;
  c.mla.q_lora_rank = 4;
  c.mla.v_head_dim = 2;
  c.moe = {.num_experts = 6,
           .topk = 2,
           .ffn_hidden_size = 3,
           .shared_ffn_hidden_size = 3,
           .first_dense_layers = 1,
           .score = RouterScore::kSigmoid,
           .num_groups = 2,
           .group_topk = 1,
           .scaling_factor = 2.5};
  return c;
}

// Heads wider than hidden / heads with norms of their own, as Qwen3; with experts, biases of q, k, v alone and a gated
// shared expert, as Qwen2-MoE.
ModelConfig tiny_qwen(bool experts) {
  ModelConfig c{.num_layers = 2,
                .hidden_size = 6,
                .ffn_hidden_size = 5,
                .num_attention_heads = 4,
                .num_query_groups = 2,
                .kv_channels = 4,
                .vocab_size = 7,
                .seq_length = 6,
                .norm_epsilon = 1e-6,
                .rope_theta = 50.0};
  c.qk_norm = c.tie_embeddings = !experts;
  if (!experts) return c;
  c.hidden_size = 8;
  c.kv_channels = 0;
  c.add_qkv_bias = true;
  c.moe = {.num_experts = 5,
           .topk = 2,
           .ffn_hidden_size = 3,
           .shared_ffn_hidden_size = 4,
           .shared_gate = true,
           .normalize_topk = false};
  return c;
}

// The other forms of a block (tests/golden/forms.py): norms behind, before and behind, branches of the same input.
ModelConfig form(int64_t heads, int64_t groups, int64_t head_dim) {
  return {.num_layers = 2,
          .hidden_size = 8,
          .ffn_hidden_size = 5,
          .num_attention_heads = heads,
          .num_query_groups = groups,
          .kv_channels = head_dim,
          .vocab_size = 7,
          .seq_length = 6,
          .norm_epsilon = 1e-6,
          .rope_theta = 50.0};
}

ModelConfig tiny_olmo2() {
  ModelConfig c = form(4, 2, 2);
  c.norm_placement = NormPlacement::kBehind;
  c.qk_norm = true;
  c.qk_norm_width = QkNormWidth::kAllHeads;
  return c;
}

ModelConfig tiny_smollm3() {
  ModelConfig c = form(4, 2, 2);
  c.rope_layers = {.skip_freq = 2};
  return c;
}

ModelConfig tiny_nemotron() {
  ModelConfig c = form(4, 2, 2);
  c.norm = NormKind::kLayerNorm;
  c.norm_1p = true;
  c.activation = ActivationKind::kSquaredRelu;
  return c;
}

ModelConfig tiny_granite() {
  ModelConfig c = form(4, 2, 2);
  c.embedding_multiplier = 3;
  c.residual_multiplier = 0.4;
  c.query_pre_attn_scalar = 9;
  c.logit_scale = 0.5;
  return c;
}

ModelConfig tiny_cohere2() {
  ModelConfig c = form(2, 1, 4);
  c.norm = NormKind::kLayerNorm;
  c.norm_bias = false;
  c.residual_form = ResidualForm::kParallelOneNorm;
  c.rotary_interleaved = c.tie_embeddings = true;
  c.logit_scale = 0.25;
  c.window_size = 3;
  c.window_layers = c.rope_layers = {.skip_freq = 2};
  return c;
}

// tests/golden/gpt_oss.py
ModelConfig tiny_gpt_oss() {
  ModelConfig c = form(4, 2, 4);
  c.add_bias = true;
  c.softmax = SoftmaxKind::kLearnable;
  c.activation = ActivationKind::kSwiGluOai;
  c.window_size = 3;
  c.window_layers = {.skip_freq = 2};
  c.yarn = {.scaling_factor = 4,
            .original_seq_length = 4,
            .beta_fast = 2,
            .beta_slow = 0.25,
            .mscale_all_dim = 0,
            .truncate = false};
  c.moe = {.num_experts = 5, .topk = 2, .router_bias = true};
  return c;
}

// tests/golden/llama4.py
ModelConfig tiny_llama4() {
  ModelConfig c = form(4, 2, 4);
  c.num_layers = 4;
  c.hidden_size = 6;
  c.seq_length = 7;
  c.rope_layers = c.window_layers = {.skip_freq = 2};
  c.attention_chunk = 3;
  c.qk_l2_norm = true;
  c.query_temperature_scale = 0.5;
  c.query_temperature_floor = 2;
  c.moe = {.num_experts = 5,
           .topk = 1,
           .ffn_hidden_size = 3,
           .shared_ffn_hidden_size = 3,
           .layers = {.pattern = {false, true}},
           .score = RouterScore::kSigmoid,
           .normalize_topk = false,
           .weigh_inputs = true};
  return c;
}

// tests/golden/nemotron_h.py
ModelConfig tiny_nemotron_h() {
  ModelConfig c = form(4, 2, 3);
  c.num_layers = 4;
  c.hybrid_pattern = "M*-M";
  c.hidden_size = 6;
  c.ffn_hidden_size = 5;
  c.seq_length = 7;
  c.norm_epsilon = 1e-5;
  c.position = PositionKind::kNone;
  c.activation = ActivationKind::kSquaredRelu;
  c.mamba = {.num_heads = 4, .head_dim = 3, .state_dim = 2, .num_groups = 2, .min_step = 0.4};
  return c;
}

// tests/golden/qwen3_next.py
ModelConfig tiny_qwen3_next() {
  ModelConfig c = form(4, 2, 4);
  c.num_layers = 4;
  c.hidden_size = 6;
  c.seq_length = 7;
  c.norm_1p = c.qk_norm = c.attention_output_gate = true;
  c.rotary_percent = 0.5;
  c.linear = {.kind = LinearAttentionKind::kGatedDeltaNet,
              .num_key_heads = 2,
              .num_value_heads = 4,
              .key_head_dim = 3,
              .value_head_dim = 2};
  c.moe = {.num_experts = 5, .topk = 2, .ffn_hidden_size = 3, .shared_ffn_hidden_size = 3, .shared_gate = true};
  return c;
}

ModelConfig tiny_gemma(bool third) {
  ModelConfig c = form(2, 1, 6);
  c.norm_placement = NormPlacement::kBoth;
  c.norm_1p = c.scale_embeddings = c.tie_embeddings = true;
  c.activation = ActivationKind::kGeGlu;
  c.window_size = 3;
  c.window_layers = {.skip_freq = 2};
  c.qk_norm = third;
  c.local_rope_theta = third ? 9 : 0;
  if (third) return c;
  c.query_pre_attn_scalar = 9;
  c.attn_logit_softcapping = 0.8;
  c.final_logit_softcapping = 1.5;
  return c;
}

ModelConfig tiny_parallel(bool one_norm) {
  ModelConfig c = form(2, 2, 4);
  c.norm = NormKind::kLayerNorm;
  c.add_bias = true;
  c.add_head_bias = one_norm;
  c.activation = one_norm ? ActivationKind::kGelu : ActivationKind::kGeluErf;
  c.residual_form = one_norm ? ResidualForm::kParallelOneNorm : ResidualForm::kParallel;
  return c;
}

// Weight k of the generator's list is 0.3 wave(k), norm weights stand around 1; the list's order is in the file.
void set_weights(CausalLm& model, const golden::Golden& file) {
  double salt = 0;
  for (const std::string& line : file.names) {
    if (line.rfind("grad.", 0) != 0) continue;
    Parameter* parameter = model.registry().find(line.substr(5));
    ASSERT_NE(parameter, nullptr) << line;
    const bool is_norm = line.find("norm.weight") != std::string::npos;
    const at::NoGradGuard no_grad;
    parameter->data.copy_(golden::wave(parameter->data.sizes(), salt, 0.3, is_norm ? 1.0 : 0.0));
    salt += 1;
  }
  EXPECT_EQ(static_cast<size_t>(salt), model.registry().parameters().size());
}

void expect_golden_model(const std::string& name, const ModelConfig& config, at::ScalarType dtype, double tolerance) {
  run_ranks(dims_of(1, 1), [&](RankContext& context) {
    const golden::Golden file = golden::load(name);
    const auto model = make_transformer(config, context, {.dtype = dtype});
    set_weights(*model, file);
    const Batch batch{.tokens_BS = file["tokens"].to(at::kLong), .targets_BS = file["targets"].to(at::kLong)};
    EXPECT_LT(relative_error(model->logits(batch), file["logits"]), tolerance);
    const at::Tensor loss = model->loss_sum(batch);
    EXPECT_LT(relative_error(loss.view({1}), file["loss"]), tolerance);
    if (config.mtp_num_layers > 0) {
      const double mtp_loss = file["mtp_loss"].item<double>();
      EXPECT_NEAR(model->take_mtp_loss_sum(), mtp_loss, tolerance * mtp_loss);
    }
    EXPECT_EQ(model->take_mtp_loss_sum(), 0) << "taken, or none";
    torch::autograd::backward({loss}, {});
    for (const Parameter* parameter : model->registry().parameters()) {
      const at::Tensor& want = file["grad." + parameter->name];
      if (!parameter->data.grad().defined()) {
        EXPECT_EQ(want.count_nonzero().item<int64_t>(), 0) << parameter->name;
      } else {
        EXPECT_LT(relative_error(parameter->data.grad(), want), tolerance) << parameter->name;
      }
    }
  });
}

TEST(GoldenModel, LlamaLikeFp64) { expect_golden_model("llama_model.txt", tiny(true), at::kDouble, 1e-10); }
TEST(GoldenModel, LlamaLikeFp32) { expect_golden_model("llama_model.txt", tiny(true), at::kFloat, 5e-6); }
TEST(GoldenModel, Gpt2LikeFp64) { expect_golden_model("gpt2_model.txt", tiny(false), at::kDouble, 1e-10); }
TEST(GoldenModel, Gpt2LikeFp32) { expect_golden_model("gpt2_model.txt", tiny(false), at::kFloat, 5e-6); }
TEST(GoldenModel, LatentFp64) { expect_golden_model("latent_model.txt", tiny_deepseek(false), at::kDouble, 1e-10); }
TEST(GoldenModel, LatentFp32) { expect_golden_model("latent_model.txt", tiny_deepseek(false), at::kFloat, 1e-5); }
TEST(GoldenModel, DeepSeekFp64) { expect_golden_model("deepseek_model.txt", tiny_deepseek(true), at::kDouble, 1e-10); }
TEST(GoldenModel, DeepSeekFp32) { expect_golden_model("deepseek_model.txt", tiny_deepseek(true), at::kFloat, 1e-5); }
TEST(GoldenModel, Qwen3Fp64) { expect_golden_model("qwen3_model.txt", tiny_qwen(false), at::kDouble, 1e-10); }
TEST(GoldenModel, Qwen3Fp32) { expect_golden_model("qwen3_model.txt", tiny_qwen(false), at::kFloat, 1e-5); }
TEST(GoldenModel, Qwen2MoeFp64) { expect_golden_model("qwen2_moe_model.txt", tiny_qwen(true), at::kDouble, 1e-10); }
TEST(GoldenModel, Qwen2MoeFp32) { expect_golden_model("qwen2_moe_model.txt", tiny_qwen(true), at::kFloat, 1e-5); }
TEST(GoldenModel, Olmo2Fp64) { expect_golden_model("olmo2_model.txt", tiny_olmo2(), at::kDouble, 1e-10); }
TEST(GoldenModel, Olmo2Fp32) { expect_golden_model("olmo2_model.txt", tiny_olmo2(), at::kFloat, 1e-5); }
TEST(GoldenModel, SmolLm3Fp64) { expect_golden_model("smollm3_model.txt", tiny_smollm3(), at::kDouble, 1e-10); }
TEST(GoldenModel, SmolLm3Fp32) { expect_golden_model("smollm3_model.txt", tiny_smollm3(), at::kFloat, 1e-5); }
TEST(GoldenModel, NemotronFp64) { expect_golden_model("nemotron_model.txt", tiny_nemotron(), at::kDouble, 1e-10); }
TEST(GoldenModel, NemotronFp32) { expect_golden_model("nemotron_model.txt", tiny_nemotron(), at::kFloat, 1e-5); }
TEST(GoldenModel, GraniteFp64) { expect_golden_model("granite_model.txt", tiny_granite(), at::kDouble, 1e-10); }
TEST(GoldenModel, GraniteFp32) { expect_golden_model("granite_model.txt", tiny_granite(), at::kFloat, 1e-5); }
TEST(GoldenModel, Cohere2Fp64) { expect_golden_model("cohere2_model.txt", tiny_cohere2(), at::kDouble, 1e-10); }
TEST(GoldenModel, Cohere2Fp32) { expect_golden_model("cohere2_model.txt", tiny_cohere2(), at::kFloat, 1e-5); }
TEST(GoldenModel, Llama4Fp64) { expect_golden_model("llama4_model.txt", tiny_llama4(), at::kDouble, 1e-10); }
TEST(GoldenModel, NemotronHFp64) { expect_golden_model("nemotron_h_model.txt", tiny_nemotron_h(), at::kDouble, 1e-10); }
TEST(GoldenModel, NemotronHFp32) { expect_golden_model("nemotron_h_model.txt", tiny_nemotron_h(), at::kFloat, 1e-5); }
TEST(GoldenModel, Qwen3NextFp64) { expect_golden_model("qwen3_next_model.txt", tiny_qwen3_next(), at::kDouble, 1e-10); }
// Keys and queries of some positions are short before their length is made 1, which magnifies rounding.
TEST(GoldenModel, Qwen3NextFp32) { expect_golden_model("qwen3_next_model.txt", tiny_qwen3_next(), at::kFloat, 5e-4); }
TEST(GoldenModel, Llama4Fp32) { expect_golden_model("llama4_model.txt", tiny_llama4(), at::kFloat, 1e-5); }
TEST(GoldenModel, GptOssFp64) { expect_golden_model("gpt_oss_model.txt", tiny_gpt_oss(), at::kDouble, 1e-10); }
TEST(GoldenModel, GptOssFp32) { expect_golden_model("gpt_oss_model.txt", tiny_gpt_oss(), at::kFloat, 1e-5); }
TEST(GoldenModel, Gemma2Fp64) { expect_golden_model("gemma2_model.txt", tiny_gemma(false), at::kDouble, 1e-10); }
// Four norms a layer round more often.
TEST(GoldenModel, Gemma2Fp32) { expect_golden_model("gemma2_model.txt", tiny_gemma(false), at::kFloat, 5e-5); }
TEST(GoldenModel, Gemma3Fp64) { expect_golden_model("gemma3_model.txt", tiny_gemma(true), at::kDouble, 1e-10); }
TEST(GoldenModel, Gemma3Fp32) { expect_golden_model("gemma3_model.txt", tiny_gemma(true), at::kFloat, 5e-5); }
TEST(GoldenModel, GptNeoxFp64) { expect_golden_model("gpt_neox_model.txt", tiny_parallel(false), at::kDouble, 1e-10); }
TEST(GoldenModel, GptNeoxFp32) { expect_golden_model("gpt_neox_model.txt", tiny_parallel(false), at::kFloat, 1e-5); }
TEST(GoldenModel, Phi2Fp64) { expect_golden_model("phi2_model.txt", tiny_parallel(true), at::kDouble, 1e-10); }
TEST(GoldenModel, Phi2Fp32) { expect_golden_model("phi2_model.txt", tiny_parallel(true), at::kFloat, 1e-5); }

}  // namespace
}  // namespace ranklab
