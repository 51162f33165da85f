#include "core/model/transformer.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <atomic>

#include "core/base/error.h"
#include "core/sim/aten.h"
#include "core/spec/presets.h"
#include "tests/parallel/run_ranks.h"

namespace ranklab {
namespace {

ModelConfig small() {
  return {.num_layers = 2,
          .hidden_size = 16,
          .ffn_hidden_size = 24,
          .num_attention_heads = 4,
          .vocab_size = 11,
          .seq_length = 8};
}

Batch batch_of(int64_t sequences, int64_t length, int64_t vocab) {
  const at::Tensor tokens =
      (at::arange(sequences * (length + 1), at::kLong) * 7 + 3).remainder(vocab).view({sequences, -1});
  return {.tokens_BS = tokens.narrow(1, 0, length).contiguous(),
          .targets_BS = tokens.narrow(1, 1, length).contiguous()};
}

TEST(Transformer, ParameterCountIsTheConfigs) {
  run_ranks(dims_of(1, 1), [](RankContext& context) {
    for (ModelConfig c : {model_preset("gpt_tiny"), model_preset("gpt2_124m"), model_preset("llama_1b")}) {
      c.num_layers = 2;
      c.hidden_size = 4 * c.num_attention_heads;
      c.vocab_size = 50;
      c.ffn_hidden_size = 24;
      c.seq_length = 16;
      int64_t count = 0;
      const std::unique_ptr<CausalLm> model = make_transformer(c, context, {});
      for (const Parameter* p : model->registry().parameters()) count += p->data.numel();
      EXPECT_EQ(count, c.parameter_count());
    }
  });
}

// The last stage embeds tokens, too, where the head is tied to the embedding and where further tokens are predicted.
TEST(Transformer, ParametersKnowTheirUnit) {
  run_ranks(dims_of(1, 1), [](RankContext& context) {
    using Place = ModelUnit::Place;
    for (const auto& [tied, predicted] : {std::pair{false, 0}, std::pair{true, 0}, std::pair{false, 1}}) {
      ModelConfig c = small();
      c.tie_embeddings = tied;
      c.mtp_num_layers = predicted;
      const auto model = make_transformer(c, context, {});
      const auto unit = [&](const char* name) { return model->registry().find(name)->unit; };
      EXPECT_EQ(unit("embedding.weight").place, Place::kFirst);
      EXPECT_EQ(unit("embedding.weight").used_by_last, tied || predicted > 0);
      EXPECT_EQ(unit("layers.1.mlp.down.weight").name, "layers.1");
      EXPECT_EQ(unit("layers.1.mlp.down.weight").layer, 1);
      EXPECT_EQ(unit("final_norm.weight").place, Place::kLast);
      if (predicted == 0) continue;
      EXPECT_EQ(unit("mtp.0.block.attention.out.weight").name, "mtp.0");
      EXPECT_EQ(unit("mtp.0.block.attention.out.weight").place, Place::kLast);
    }
  });
}

TEST(Transformer, ResidualOutputsStartSmallerByDepth) {
  run_ranks(dims_of(1, 1), [](RankContext& context) {
    ModelConfig c = small();
    c.hidden_size = 128;
    const auto model = make_transformer(c, context, {});
    const auto spread = [&](const char* name) { return model->registry().find(name)->data.std().item<double>(); };
    EXPECT_NEAR(spread("layers.0.attention.qkv.weight"), 0.02, 5e-4);
    EXPECT_NEAR(spread("layers.1.attention.out.weight"), 0.02 / 2.0, 3e-4);  // sqrt(2 x 2 layers)
    EXPECT_NEAR(spread("layers.1.mlp.down.weight"), 0.02 / 2.0, 6e-4);
  });
}

// What the op observer counts over all ranks of a step must be the model's formula; flash attention's backward
// recomputes the scores, so its 6 units are 7.
TEST(Transformer, ObservedFlopsAreTheFormulas) {
  const HardwareProfile profile = load_hardware_profile("h100-sxm");
  const ModelConfig c = small();
  const double tokens = 4 * 8;
  const double attention = 2.0 * 8 * 16;  // layers x S x H
  const double want = tokens * (c.training_flops_per_token(8) + attention);
  for (const int tp : {1, 2}) {
    std::atomic<double> observed{0};
    const DeviceMesh mesh(dims_of(1, tp));
    make_thread_world({.size = tp, .on_stuck = {}})->run([&](Endpoint& endpoint) {
      RankContext context(endpoint, mesh, {.virtual_time = true, .trace = true, .profile = &profile});
      ModelConfig even = c;
      even.vocab_size = 12;  // 11 would be padded with tp 2
      const auto model = make_transformer(tp == 1 ? c : even, context, {.sequence_parallel = true});
      const double before = context.op_observer()->flops();
      torch::autograd::backward({model->loss_sum(batch_of(4, 8, 11))}, {});
      double flops = observed.load();
      const double mine = context.op_observer()->flops() - before - (tp == 1 ? 0 : 6.0 * tokens * 16 / tp);
      while (!observed.compare_exchange_weak(flops, flops + mine)) {
      }
      EXPECT_GT(context.clock().now_ns(), 0);
    });
    EXPECT_NEAR(observed.load(), want, 1e-9 * want) << "tp " << tp;
  }
}

TEST(Transformer, FirstLossIsThatOfAUniformGuess) {
  run_ranks(dims_of(1, 1), [](RankContext& context) {
    const auto model = make_transformer(small(), context, {});
    const Batch batch = batch_of(4, 8, 11);
    EXPECT_NEAR(model->loss_sum(batch).item<double>() / 32, std::log(11.0), 0.05);
  });
}

TEST(Transformer, LogitsAreWholeOnEveryRankForAnyLength) {
  at::Tensor reference;
  for (const int tp : {1, 2, 4}) {
    run_ranks(dims_of(1, tp), [&](RankContext& context) {
      const auto model = make_transformer(small(), context, {.sequence_parallel = true, .dtype = at::kDouble});
      model->set_training(false);
      const Batch batch = batch_of(2, 5, 11);  // 5 positions divide by neither tp
      const at::Tensor logits = model->logits(batch);
      ASSERT_EQ(logits.sizes(), (std::vector<int64_t>{2, 5, 11}));
      if (tp == 1) {
        reference = logits;
      } else {
        EXPECT_LT((logits - reference).abs().max().item<double>(), 1e-13);
      }
    });
  }
}

TEST(Transformer, DropoutFollowsTrainingModeStepAndSample) {
  run_ranks(dims_of(1, 1), [](RankContext& context) {
    ModelConfig c = small();
    c.dropout = 0.3;
    const auto model = make_transformer(c, context, {});
    Batch batch = batch_of(2, 8, 11);
    const at::Tensor first = model->logits(batch);
    EXPECT_TRUE(at::equal(first, model->logits(batch)));
    batch.step = 1;
    EXPECT_FALSE(at::equal(first, model->logits(batch)));
    batch.step = 0;
    batch.first_sample = 2;
    EXPECT_FALSE(at::equal(first, model->logits(batch)));
    model->set_training(false);
    const at::Tensor calm = model->logits(batch);
    batch.step = 9;
    EXPECT_TRUE(at::equal(calm, model->logits(batch)));
  });
}

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Transformer, RefusesBatchesThatDoNotFit) {
  run_ranks(dims_of(1, 1), [](RankContext& context) {
    const auto model = make_transformer(small(), context, {});
    EXPECT_NE(refusal([&] { model->loss_sum(batch_of(2, 9, 11)); }).find("S at most 8"), std::string::npos);
    EXPECT_NE(refusal([&] { model->loss_sum(batch_of(2, 8, 20)); }).find("want 0 .. 10"), std::string::npos);
    Batch ragged = batch_of(2, 8, 11);
    ragged.targets_BS = ragged.targets_BS.narrow(1, 0, 7);
    EXPECT_NE(refusal([&] { model->loss_sum(ragged); }).find("differ in shape"), std::string::npos);
  });
}

TEST(Transformer, RunsInBfloat16) {
  run_ranks(dims_of(1, 2), [](RankContext& context) {
    const auto model = make_transformer(small(), context, {.sequence_parallel = true, .dtype = at::kBFloat16});
    const at::Tensor loss = model->loss_sum(batch_of(4, 8, 11));
    EXPECT_EQ(loss.scalar_type(), at::kFloat);
    EXPECT_NEAR(loss.item<double>() / 32, std::log(11.0), 0.1);
    torch::autograd::backward({loss}, {});
    for (const Parameter* p : model->registry().parameters()) {
      EXPECT_TRUE(at::isfinite(p->data.grad()).all().item<bool>()) << p->name;
    }
  });
}

}  // namespace
}  // namespace ranklab
