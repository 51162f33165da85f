// The table of a model against the parameters that the model makes.
#include "core/model/module_table.h"

#include <gtest/gtest.h>

#include <map>

#include "core/model/presets.h"
#include "core/model/transformer.h"
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
  return {llama, gpt2, deepseek, mixture, predicting};
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

TEST(ModuleTable, NamesEveryParameterThatTheModelMakes) {
  for (const ModelConfig& config : kinds()) EXPECT_EQ(planned(config), made(config));
}

}  // namespace
}  // namespace ranklab
