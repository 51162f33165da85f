// Two whole tiny models (Llama-like and GPT-2-like) against torch.nn.functional: logits, loss and every gradient.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/model/transformer.h"
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

void expect_golden_model(const std::string& name, bool llama, at::ScalarType dtype, double tolerance) {
  run_ranks(dims_of(1, 1), [&](RankContext& context) {
    const golden::Golden file = golden::load(name);
    const auto model = make_transformer(tiny(llama), context, {.dtype = dtype});
    set_weights(*model, file);
    const Batch batch{.tokens_BS = file["tokens"].to(at::kLong), .targets_BS = file["targets"].to(at::kLong)};
    EXPECT_LT(relative_error(model->logits(batch), file["logits"]), tolerance);
    const at::Tensor loss = model->loss_sum(batch);
    EXPECT_LT(relative_error(loss.view({1}), file["loss"]), tolerance);
    torch::autograd::backward({loss}, {});
    for (const Parameter* parameter : model->registry().parameters()) {
      EXPECT_LT(relative_error(parameter->data.grad(), file["grad." + parameter->name]), tolerance) << parameter->name;
    }
  });
}

TEST(GoldenModel, LlamaLikeFp64) { expect_golden_model("llama_model.txt", true, at::kDouble, 1e-10); }
TEST(GoldenModel, LlamaLikeFp32) { expect_golden_model("llama_model.txt", true, at::kFloat, 5e-6); }
TEST(GoldenModel, Gpt2LikeFp64) { expect_golden_model("gpt2_model.txt", false, at::kDouble, 1e-10); }
TEST(GoldenModel, Gpt2LikeFp32) { expect_golden_model("gpt2_model.txt", false, at::kFloat, 5e-6); }

}  // namespace
}  // namespace ranklab
