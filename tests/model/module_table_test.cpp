// The table of a model against the parameters that the model makes.
#include "core/spec/module_table.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "core/model/transformer.h"
#include "core/spec/presets.h"
#include "tests/parallel/run_ranks.h"

namespace ranklab {
namespace {

std::vector<ModelConfig> kinds() {
  ModelConfig llama;
  llama.num_layers = 3;
  llama.num_query_groups = 2;
  ModelConfig gpt2 = llama;
  gpt2.norm = NormKind::kLayerNorm;
  gpt2.position = PositionKind::kLearned;
  gpt2.activation = ActivationKind::kGelu;
  gpt2.add_bias = true;
  gpt2.tie_embeddings = true;
  ModelConfig deepseek = model_preset("deepseek_v3_tiny");
  ModelConfig mixture = llama;
  mixture.moe = {.num_experts = 4, .topk = 2};
  mixture.num_query_groups = 0;
  mixture.mla.kv_lora_rank = 16;
  ModelConfig predicting = llama;
  predicting.mtp_num_layers = 2;
  predicting.tie_embeddings = true;
  ModelConfig repeating = model_preset("deepseek_v3_tiny");
  repeating.mtp_num_layers = 3;
  repeating.mtp_use_repeated_layer = true;
  ModelConfig qwen2 = llama;
  qwen2.add_qkv_bias = true;
  qwen2.moe = {.num_experts = 4, .topk = 2, .shared_ffn_hidden_size = 24, .shared_gate = true};
  ModelConfig both_biases = gpt2;  // the one contains the other
  both_biases.add_qkv_bias = both_biases.qk_norm = true;
  ModelConfig attention_bias = llama;
  attention_bias.add_attention_bias = true;
  ModelConfig olmo2 = llama;
  olmo2.norm_placement = NormPlacement::kBehind;
  olmo2.qk_norm = true;
  olmo2.qk_norm_width = QkNormWidth::kAllHeads;
  ModelConfig both_norms = model_preset("deepseek_v3_tiny");
  both_norms.norm_placement = NormPlacement::kBoth;
  ModelConfig gemma = both_norms;
  gemma.activation = ActivationKind::kGeGlu;
  gemma.moe = {};
  gemma.mtp_num_layers = 0;
  ModelConfig phi2 = gpt2;
  phi2.residual_form = ResidualForm::kParallelOneNorm;
  phi2.add_head_bias = true;
  ModelConfig latent_with_all = model_preset("deepseek_v3_tiny");
  latent_with_all.norm = NormKind::kLayerNorm;
  latent_with_all.activation = ActivationKind::kGelu;
  latent_with_all.add_attention_bias = true;
  ModelConfig latent_biases = gpt2;
  latent_biases.num_query_groups = 0;
  latent_biases.mla.kv_lora_rank = 16;
  ModelConfig biased_experts = qwen2;
  biased_experts.add_bias = true;
  return {biased_experts, latent_with_all, latent_biases, llama, gpt2,        deepseek,
          mixture,        predicting,      repeating,     qwen2, both_biases, model_preset("qwen3_moe_tiny"),
          attention_bias, olmo2,           both_norms,    gemma, phi2};
}

// Every parameter of the registry by its name, with its elements.
std::map<std::string, int64_t> made(const ModelConfig& config) {
  std::map<std::string, int64_t> out;
  run_ranks({.world = 1}, [&](RankContext& context) {
    const auto model = make_transformer(config, context, {});
    for (const Parameter* parameter : model->registry().parameters()) out[parameter->name] = parameter->data.numel();
  });
  return out;
}

std::string numbered(std::string name, int64_t number) {
  const size_t star = name.find('*');
  return star == std::string::npos ? name : name.replace(star, 1, std::to_string(number));
}

std::map<std::string, int64_t> planned(const ModelConfig& config) {
  std::map<std::string, int64_t> out;
  for (const ModuleRow& row : module_table(config)) {
    for (int64_t copy = 0; copy < row.copies() && !row.tied; ++copy) {
      const std::string of_layer = numbered(row.parameter, row.first_layer + copy / row.per_layer);
      out[numbered(of_layer, copy % row.per_layer)] = row.elements();
    }
  }
  return out;
}

// Gates are never quantized; a norm of heads is the same on every rank, but not what it has seen.
TEST(ModuleTable, KnowsGatesAndNormsOfHeads) {
  ModelConfig config = model_preset("qwen3_moe_tiny");
  config.moe.shared_ffn_hidden_size = 64;
  config.moe.shared_gate = true;
  std::vector<std::string> gates, by_heads;
  for (const ModuleRow& row : module_table(config)) {
    if (row.is_gate) gates.push_back(row.parameter);
    if (row.by_heads) by_heads.push_back(row.parameter);
  }
  EXPECT_EQ(gates, (std::vector<std::string>{"layers.*.mlp.router.weight", "layers.*.mlp.shared_gate.weight"}));
  EXPECT_EQ(by_heads,
            (std::vector<std::string>{"layers.*.attention.q_norm.weight", "layers.*.attention.k_norm.weight"}));
}

TEST(ModuleTable, NamesEveryParameterThatTheModelMakes) {
  for (const ModelConfig& config : kinds()) EXPECT_EQ(planned(config), made(config));
}

}  // namespace
}  // namespace ranklab
