// The table of a model against the parameters that the model makes, and against its own sums.
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
  return {llama, gpt2};
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

std::map<std::string, int64_t> planned(const ModelConfig& config) {
  std::map<std::string, int64_t> out;
  for (const ModuleRow& row : module_table(config)) {
    const size_t star = row.parameter.find('*');
    for (int64_t copy = 0; copy < row.copies && !row.tied; ++copy) {
      std::string name = row.parameter;
      if (star != std::string::npos) name.replace(star, 1, std::to_string(copy));
      out[name] = row.elements();
    }
  }
  return out;
}

TEST(ModuleTable, NamesEveryParameterThatTheModelMakes) {
  for (const ModelConfig& config : kinds()) EXPECT_EQ(planned(config), made(config));
}

TEST(ModuleTable, AddsUpToTheModel) {
  for (const ModelPreset& preset : model_presets()) {
    int64_t parameters = 0;
    double flops = 0;
    for (const ModuleRow& row : module_table(preset.config)) {
      parameters += row.parameters();
      flops += row.forward_flops_per_token();
    }
    const ModelConfig& c = preset.config;
    EXPECT_EQ(parameters, c.parameter_count()) << preset.name;
    const auto attention = 2.0 * static_cast<double>(c.num_layers * c.seq_length * c.hidden_size);
    EXPECT_DOUBLE_EQ(3 * (flops + attention), c.training_flops_per_token(c.seq_length)) << preset.name;
  }
}

}  // namespace
}  // namespace ranklab
