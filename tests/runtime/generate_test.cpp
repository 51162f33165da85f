// Tokens from a model: with a cache the same as from the whole window, also past its end; what top-k may draw.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <set>

#include "core/base/error.h"
#include "core/model/transformer.h"
#include "core/runtime/text/generate.h"
#include "core/sim/aten.h"
#include "tests/parallel/run_ranks.h"
#include "tests/runtime/tiny_run.h"

namespace ranklab {
namespace {

enum class Tiny { kPlain, kLatent, kCapacity, kLongRope };
ModelConfig tiny(Tiny kind) {
  ModelConfig c{.num_layers = 2,
                .hidden_size = 16,
                .ffn_hidden_size = 24,
                .num_attention_heads = 4,
                .vocab_size = 256,
                .seq_length = 12,
                .init_std = 0.5};
  if (kind == Tiny::kCapacity) c.moe = {.num_experts = 4, .topk = 2, .ffn_hidden_size = 16, .capacity_factor = 0.5};
  if (kind == Tiny::kLongRope)
    c.rope_scaling = {.kind = RopeScalingKind::kLongRope,
                      .factor = 2,
                      .original_seq_length = 8,
                      .short_factors = {1, 1.5},
                      .long_factors = {3, 9}};
  if (kind == Tiny::kLatent) c.mla = {.kv_lora_rank = 6, .qk_head_dim = 4, .qk_pos_emb_head_dim = 4, .v_head_dim = 4};
  return c;
}

const std::vector<int64_t> kPrompt = {65, 110, 100, 32};

TEST(Generate, ACacheGivesTheTokensOfTheWholeWindow) {
  for (const Tiny kind : {Tiny::kPlain, Tiny::kLatent, Tiny::kCapacity, Tiny::kLongRope}) {
    for (const int tp : {1, 2}) {
      run_ranks(dims_of(1, tp), [&](RankContext& context) {
        const auto model = make_transformer(tiny(kind), context, {.sequence_parallel = tp > 1, .dtype = at::kDouble});
        model->set_training(false);
        // Four windows: 4 + 40 tokens through 12 positions.
        const GenerateOptions options{.tokens = 40, .temperature = 0.7, .top_k = 20, .seq_length = 12, .seed = 3};
        const auto cached = make_cached_scorer(*model, tiny(kind));
        const auto whole = make_window_scorer(
            [&](const at::Tensor& tokens_BS) { return model->logits({.tokens_BS = tokens_BS, .targets_BS = {}}); },
            at::kCPU);
        const std::vector<int64_t> got = generate_tokens(*cached, kPrompt, options);
        EXPECT_EQ(got, generate_tokens(*whole, kPrompt, options));
        ASSERT_EQ(got.size(), 44u);
        EXPECT_TRUE(std::equal(kPrompt.begin(), kPrompt.end(), got.begin()));
        EXPECT_GT(std::set<int64_t>(got.begin(), got.end()).size(), 8u) << "drawn, not repeated";
        EXPECT_GT(cached->cache_bytes_per_token(), 0);
        EXPECT_EQ(whole->cache_bytes_per_token(), 0);
      });
    }
  }
}

// Always the same logits; counts its calls.
class FixedScorer : public TokenScorer {
 public:
  explicit FixedScorer(std::vector<double> logits) : logits_(std::move(logits)) {}
  at::Tensor next_logits(const std::vector<int64_t>& window) override {
    lengths.push_back(window.size());
    return at::tensor(logits_, at::kDouble);
  }
  std::vector<size_t> lengths;

 private:
  std::vector<double> logits_;
};

std::set<int64_t> drawn(const GenerateOptions& options) {
  FixedScorer scorer({1.0, 3.0, 2.0, 3.0, 2.5});
  const std::vector<int64_t> tokens = generate_tokens(scorer, {0}, options);
  return {tokens.begin() + 1, tokens.end()};
}

// Padding affects no token causally, but a scale of a whole tensor would include it.
TEST(Generate, AWindowHasNothingBehindItsLastToken) {
  std::vector<int64_t> lengths;
  const auto scorer = make_window_scorer(
      [&](const at::Tensor& tokens_BS) {
        lengths.push_back(tokens_BS.size(1));
        return at::zeros({1, tokens_BS.size(1), 256});
      },
      at::kCPU);
  scorer->next_logits({1, 2, 3});
  scorer->next_logits({1, 2, 3, 4, 5});
  EXPECT_EQ(lengths, (std::vector<int64_t>{3, 5}));
}

TEST(Generate, TopKDrawsAmongTheLikeliest) {
  const auto options = [](double temperature, int64_t top_k) {
    return GenerateOptions{.tokens = 300, .temperature = temperature, .top_k = top_k, .seq_length = 400, .seed = 1};
  };
  EXPECT_EQ(drawn(options(0, 0)), (std::set<int64_t>{1})) << "the lowest of equal ones";
  EXPECT_EQ(drawn(options(1, 1)), (std::set<int64_t>{1}));
  EXPECT_EQ(drawn(options(1, 2)), (std::set<int64_t>{1, 3}));
  EXPECT_EQ(drawn(options(1, 3)), (std::set<int64_t>{1, 3, 4}));
  EXPECT_EQ(drawn(options(3, 0)), (std::set<int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(drawn(options(3, 99)), (std::set<int64_t>{0, 1, 2, 3, 4}));
}

TEST(Generate, TopPDrawsAmongTheLikeliestThatHaveThatProbability) {
  const std::vector<double> logits = {std::log(0.2), std::log(0.5), std::log(0.25), std::log(0.05)};
  const auto share_of_first = [&](double top_p, int64_t top_k, const std::set<int64_t>& among) {
    FixedScorer scorer(logits);
    const std::vector<int64_t> tokens = generate_tokens(
        scorer, {0}, {.tokens = 4000, .temperature = 1, .top_k = top_k, .top_p = top_p, .seq_length = 8, .seed = 5});
    EXPECT_EQ(std::set<int64_t>(tokens.begin() + 1, tokens.end()), among) << top_p;
    return static_cast<double>(std::count(tokens.begin() + 1, tokens.end(), 1)) / 4000;
  };
  EXPECT_NEAR(share_of_first(1, 0, {0, 1, 2, 3}), 0.5, 0.03);
  EXPECT_NEAR(share_of_first(0.9, 0, {0, 1, 2}), 0.5 / 0.95, 0.03);
  EXPECT_NEAR(share_of_first(0.6, 0, {1, 2}), 0.5 / 0.75, 0.03);
  EXPECT_NEAR(share_of_first(0.6, 3, {1, 2}), 0.5 / 0.75, 0.03) << "0.5 and 0.25 of 0.95";
  EXPECT_EQ(share_of_first(0.4, 0, {1}), 1);
  EXPECT_EQ(share_of_first(0, 0, {1}), 1);
}

TEST(Generate, ATextEndsBehindATokenThatEndsIt) {
  FixedScorer scorer({std::log(0.2), std::log(0.7), std::log(0.1)});
  const GenerateOptions options{.tokens = 400, .temperature = 1, .seq_length = 8, .seed = 5};
  const std::vector<int64_t> all = generate_tokens(scorer, {2}, options);
  GenerateOptions ends = options;
  ends.end_tokens = {7, 2};
  const std::vector<int64_t> some = generate_tokens(scorer, {2}, ends);  // the prompt may have it
  const auto first = std::find(all.begin() + 1, all.end(), 2);
  ASSERT_NE(first, all.end());
  EXPECT_EQ(some, std::vector(all.begin(), first + 1));
}

TEST(Generate, DrawsWithTheProbabilitiesOfTheSoftmax) {
  FixedScorer scorer({std::log(0.2), std::log(0.7), std::log(0.1)});
  const std::vector<int64_t> tokens =
      generate_tokens(scorer, {0}, {.tokens = 4000, .temperature = 1, .seq_length = 8, .seed = 5});
  EXPECT_NEAR(static_cast<double>(std::count(tokens.begin() + 1, tokens.end(), 1)) / 4000, 0.7, 0.03);
  EXPECT_NEAR(static_cast<double>(std::count(tokens.begin() + 1, tokens.end(), 2)) / 4000, 0.1, 0.02);
}

TEST(Generate, AFullWindowDropsItsOlderHalf) {
  FixedScorer scorer({0, 1});
  generate_tokens(scorer, {0, 0, 0, 0, 0, 0}, {.tokens = 6, .temperature = 0, .seq_length = 4});
  EXPECT_THAT(scorer.lengths, testing::ElementsAre(4, 2, 3, 4, 2, 3));
}

TEST(Generate, AnEmptyPromptIsAnError) {
  FixedScorer scorer({0, 1});
  EXPECT_THROW(generate_tokens(scorer, {}, {}), Error);
}

// A replica cannot continue alone if other replicas own some of its experts.
TEST(Sample, ReplicasThatShareExpertsWriteItTogether) {
  TrainConfig config = tiny_config(1, 1);
  config.params_dtype = "fp64";
  config.train_iters = 1;
  config.sample_tokens = 24;
  config.model.mla = {.kv_lora_rank = 8, .qk_head_dim = 8, .qk_pos_emb_head_dim = 4, .v_head_dim = 8};
  config.model.moe = {.num_experts = 4, .topk = 2, .ffn_hidden_size = 16};
  const std::string alone = tiny_engine(config).fit().sample;
  ASSERT_EQ(alone.size(), std::string("And the ").size() + 24);
  config.parallel.world = config.parallel.ep = 4;
  EXPECT_EQ(tiny_engine(config).fit().sample, alone);
  config.parallel.pp = 2;  // through a pipeline there is no cache
  config.parallel.ep = 2;
  EXPECT_EQ(tiny_engine(config).fit().sample, alone);
}

TEST(Sample, TheFinaleSeesTheTrainedModelOnEveryRank) {
  const TrainConfig config = tiny_config(2, 2);
  RuntimeEngine engine = tiny_engine(config);
  std::atomic<int> calls{0};
  engine.set_finale([&](StepContext& context) {
    ++calls;
    EXPECT_EQ(context.step, config.train_iters - 1);
    EXPECT_TRUE(context.model.can_decode());
  });
  engine.fit();
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace ranklab
