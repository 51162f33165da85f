// Likelihoods of tokens: against a model's own logits, and the same in every layout.
#include "core/runtime/text/score_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <mutex>

#include "core/base/error.h"
#include "core/runtime/training_data.h"
#include "core/sim/aten.h"
#include "tests/runtime/tiny_run.h"

namespace ranklab {
namespace {

using testing::ElementsAre;

TrainConfig scored_config(ParallelDims dims) {
  TrainConfig config = tiny_config(1, 1);
  config.parallel = dims;
  config.params_dtype = "fp64";
  config.train_iters = 2;
  config.global_batch_size = 16;
  config.trace = false;
  return config;
}

std::vector<int64_t> some_tokens(size_t count) {
  std::vector<int64_t> tokens;
  for (size_t i = 0; i < count; ++i) tokens.push_back(static_cast<int64_t>((i * i * 7 + 13 * i) % 251));
  return tokens;
}

// Trains two steps, then scores: what rank 0 gets; all ranks must get the same.
std::vector<double> scores_of(const TrainConfig& config, const std::vector<ScoreRequest>& requests) {
  RuntimeEngine engine = tiny_engine(config);
  std::mutex mutex;
  std::vector<std::vector<double>> all;
  engine.set_finale([&](StepContext& context) {
    context.model.set_training(false);
    std::vector<double> mine = score_tokens(context, requests);
    const std::lock_guard lock(mutex);
    all.push_back(std::move(mine));
  });
  engine.fit();
  EXPECT_EQ(all.size(), static_cast<size_t>(resolve(config).mesh.world_size()));
  for (const std::vector<double>& other : all) EXPECT_EQ(other, all[0]);
  return all.empty() ? std::vector<double>() : all[0];
}

std::vector<ScoreRequest> mixed_requests(const std::vector<int64_t>& tokens) {
  std::vector<ScoreRequest> requests = text_windows(tokens, 16, 11);
  const std::span<const int64_t> all(tokens);
  requests.push_back({.tokens = all.subspan(3, 2), .first = 1});
  requests.push_back({.tokens = all.subspan(5, 9), .first = 6});
  requests.push_back({.tokens = all.subspan(0, 17), .first = 16});
  return requests;
}

TEST(ScoreTokens, SumsTheLogarithmsOfTheSoftmax) {
  const std::vector<int64_t> tokens = some_tokens(12);
  std::vector<double> want;
  RuntimeEngine engine = tiny_engine(scored_config({.world = 1}));
  std::vector<double> got;
  engine.set_finale([&](StepContext& context) {
    const at::NoGradGuard no_grad;
    context.model.set_training(false);
    const at::Tensor row = at::tensor(std::vector<int64_t>(tokens.begin(), tokens.end() - 1), at::kLong).unsqueeze(0);
    const at::Tensor logits = context.model.logits({.tokens_BS = row, .targets_BS = {}})[0];
    for (const int64_t first : {int64_t{1}, int64_t{7}}) {
      double sum = 0;
      for (int64_t i = first; i < 12; ++i) {
        const at::Tensor at_i = logits[i - 1];
        double total = 0;
        for (int64_t v = 0; v < 256; ++v) total += std::exp(at_i[v].item<double>());
        sum += at_i[tokens[static_cast<size_t>(i)]].item<double>() - std::log(total);
      }
      want.push_back(sum);
    }
    const std::vector<ScoreRequest> requests = {{.tokens = tokens, .first = 1}, {.tokens = tokens, .first = 7}};
    got = score_tokens(context, requests);
  });
  engine.fit();
  ASSERT_EQ(got.size(), 2u);
  EXPECT_NEAR(got[0], want[0], 1e-12 * std::abs(want[0]));
  EXPECT_NEAR(got[1], want[1], 1e-12 * std::abs(want[1]));
  EXPECT_LT(got[0], got[1]);  // more tokens are less likely
}

TEST(ScoreTokens, EveryLayoutGivesTheNumbersOfOneRank) {
  const std::vector<int64_t> tokens = some_tokens(75);
  const std::vector<ScoreRequest> requests = mixed_requests(tokens);
  const std::vector<double> want = scores_of(scored_config({.world = 1}), requests);
  ASSERT_EQ(want.size(), requests.size());
  for (const ParallelDims& dims :
       {ParallelDims{.world = 4, .tp = 4}, ParallelDims{.world = 2, .pp = 2}, ParallelDims{.world = 4, .dp = 4},
        ParallelDims{.world = 2, .cp = 2}, ParallelDims{.world = 8, .tp = 2, .pp = 2, .dp = 2}}) {
    const std::vector<double> got = scores_of(scored_config(dims), requests);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_NEAR(got[i], want[i], 1e-12 * std::abs(want[i])) << "request " << i << ", world " << dims.world;
  }
  TrainConfig sharded = scored_config({.world = 4, .dp = 4});
  sharded.zero_stage = 3;
  const std::vector<double> got = scores_of(sharded, requests);
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-12 * std::abs(want[i])) << "ZeRO 3";
}

TEST(ScoreTokens, RanksThatShareExpertsScoreTheirOwnRequests) {
  const std::vector<int64_t> tokens = some_tokens(75);
  const std::vector<ScoreRequest> requests = mixed_requests(tokens);
  const auto config = [](ParallelDims dims) {
    TrainConfig c = scored_config(dims);
    c.model.moe = {.num_experts = 4, .topk = 2, .ffn_hidden_size = 16};
    return c;
  };
  const std::vector<double> want = scores_of(config({.world = 1}), requests);
  for (const ParallelDims& dims : {ParallelDims{.world = 4, .ep = 4}, ParallelDims{.world = 4, .pp = 2, .ep = 2}}) {
    const std::vector<double> got = scores_of(config(dims), requests);
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_NEAR(got[i], want[i], 1e-12 * std::abs(want[i])) << "request " << i << ", ep " << dims.ep;
  }
}

// Experts that drop tokens, and scales of whole tensors, see all rows of a batch, and the longest row pads the others,
// which changes dynamic rotary positions: other requests in the batch must not change a request's numbers, on any
// number of ranks.
TEST(ScoreTokens, ARequestsNumbersAreItsOwn) {
  const std::vector<int64_t> tokens = some_tokens(75);
  const std::vector<ScoreRequest> requests = mixed_requests(tokens);
  const std::function<void(TrainConfig&)> capacity = [](TrainConfig& c) { c.model.moe.capacity_factor = 0.7; };
  const auto recipe = [](const char* name) { return [name](TrainConfig& c) { c.precision.recipe = name; }; };
  const auto dynamic = [](TrainConfig& c) {
    c.model.rope_scaling = {.kind = RopeScalingKind::kDynamic, .factor = 4, .original_seq_length = 4};
    c.model.init_std = 0.5;  // attention looks at positions
  };
  for (const auto& change : {capacity, {recipe("fp8_current")}, {recipe("nvfp4")}, {dynamic}}) {
    const auto config = [&](ParallelDims dims) {
      TrainConfig c = scored_config(dims);
      c.params_dtype = "fp32";
      c.train_iters = 0;
      c.model.moe = {.num_experts = 4, .topk = 2, .ffn_hidden_size = 16};
      change(c);
      return c;
    };
    const std::vector<double> want = scores_of(config({.world = 1}), requests);
    EXPECT_EQ(scores_of(config({.world = 1}), {requests[1]}), std::vector{want[1]});
    const size_t shorter = requests.size() - 2;
    const std::vector<double> alone = scores_of(config({.world = 1}), {requests[shorter]});
    EXPECT_NEAR(alone.at(0), want[shorter], 1e-6 * std::abs(want[shorter]));
    for (const ParallelDims& dims : {ParallelDims{.world = 2, .dp = 2}, ParallelDims{.world = 2, .dp = 2, .ep = 2}}) {
      const std::vector<double> got = scores_of(config(dims), requests);
      for (size_t i = 0; i < want.size(); ++i)
        EXPECT_NEAR(got[i], want[i], 1e-6 * std::abs(want[i])) << "request " << i << ", ep " << dims.ep;
    }
  }
}

// How often windows score each token; each must fit the context and give a token what the stride promises.
std::vector<int> times_scored(const std::vector<int64_t>& tokens, int64_t stride, int64_t first) {
  std::vector<int> times(tokens.size());
  for (const ScoreRequest& window : text_windows(tokens, 16, stride, first)) {
    EXPECT_LE(window.tokens.size(), 17u);
    const auto begin = static_cast<int64_t>(window.tokens.data() - tokens.data());
    for (auto i = window.first; i < static_cast<int64_t>(window.tokens.size()); ++i)
      ++times[static_cast<size_t>(begin + i)];
    EXPECT_GE(window.first, begin > 0 ? 16 - stride + 1 : first);
  }
  return times;
}

TEST(ScoreTokens, WindowsScoreEveryTokenOnce) {
  for (const size_t count : {2U, 5U, 17U, 18U, 40U, 75U}) {
    for (const int64_t stride : {1, 5, 16}) {
      for (const size_t first : {1U, 2U, 4U}) {
        if (count <= first) continue;
        std::vector<int> want(count, 1);
        std::fill_n(want.begin(), first, 0);
        EXPECT_EQ(times_scored(some_tokens(count), stride, static_cast<int64_t>(first)), want)
            << count << " tokens, stride " << stride << ", from " << first;
      }
    }
  }
}

// At a stride of the context's length the windows are the samples that validation takes, with their packed documents.
TEST(ScoreTokens, PerplexityIsTheExponentOfTheValidationLoss) {
  const DocumentSettings apart{.reset_attention_mask = true, .reset_position_ids = true, .eod_token = ' '};
  for (const auto& [documents, dims] : {std::pair{DocumentSettings{}, ParallelDims{.world = 2, .tp = 2}},
                                        {apart, {.world = 2, .tp = 2}},
                                        {{.eod_mask_loss = true, .eod_token = 'e'}, {.world = 2, .dp = 2}},
                                        {apart, {.world = 2, .pp = 2}}}) {
    TrainConfig config = scored_config(dims);
    config.documents = documents;
    config.eval_interval = 2;
    config.eval_iters = 1;
    const TrainingData data = open_training_data(resolve(config));
    const int64_t begin = data.sets[0].dataset->begin_of(Split::kValidation, 0),
                  count = 16 * config.model.seq_length + 1;
    std::vector<int64_t> tokens(static_cast<size_t>(count));
    data.sets[0].tokens->read(begin, tokens);
    std::vector<ScoreRequest> windows = text_windows(tokens, config.model.seq_length, config.model.seq_length);
    EXPECT_EQ(windows.size(), 16u);
    int64_t scored = 0;
    for (ScoreRequest& window : windows) {
      if (documents.eod_mask_loss) window.none_after = documents.eod_token;
      scored += window.scored();
    }
    EXPECT_EQ(scored < count - 1, documents.eod_mask_loss);
    auto recorded = std::make_shared<RecordingHook>();
    RuntimeEngine engine = tiny_engine(config);
    engine.add_hook(recorded);
    double sum = 0;
    engine.set_finale([&](StepContext& context) {
      context.model.set_training(false);
      const std::vector<double> scores = score_tokens(context, windows);
      if (context.ctx.global_rank() != 0) return;
      for (const double score : scores) sum -= score;
    });
    engine.fit();
    ASSERT_EQ(recorded->validation_losses.size(), 1u);
    const double loss = recorded->validation_losses[0];
    EXPECT_NEAR(sum / static_cast<double>(scored), loss, 1e-12 * loss) << documents.any();
  }
}

TEST(ScoreTokens, PackedDocumentsAreApartInEveryLayout) {
  const std::vector<int64_t> tokens = some_tokens(75);
  const std::vector<ScoreRequest> requests = mixed_requests(tokens);
  for (const PositionKind position : {PositionKind::kRope, PositionKind::kLearned}) {
    const auto config = [&](ParallelDims dims) {
      TrainConfig c = scored_config(dims);
      c.model.position = position;
      c.documents = {.reset_attention_mask = true, .reset_position_ids = true, .eod_token = tokens[9]};
      return c;
    };
    const std::vector<double> want = scores_of(config({.world = 1}), requests);
    EXPECT_NE(want, scores_of(scored_config({.world = 1}), requests));
    for (const ParallelDims& dims : {ParallelDims{.world = 4, .tp = 4}, ParallelDims{.world = 2, .pp = 2},
                                     ParallelDims{.world = 2, .cp = 2}, ParallelDims{.world = 4, .dp = 4}}) {
      const std::vector<double> got = scores_of(config(dims), requests);
      for (size_t i = 0; i < want.size(); ++i)
        EXPECT_NEAR(got[i], want[i], 1e-12 * std::abs(want[i])) << "request " << i << ", tp " << dims.tp;
    }
  }
}

TEST(ScoreTokens, RefusesWhatTheModelCannotScore) {
  const std::vector<int64_t> long_one = some_tokens(18), strange = {3, 256};
  for (const ScoreRequest& request : {ScoreRequest{.tokens = long_one}, ScoreRequest{.tokens = strange},
                                      ScoreRequest{.tokens = std::span(long_one).first(1)},
                                      ScoreRequest{.tokens = std::span(long_one).first(4), .first = 0}}) {
    RuntimeEngine engine = tiny_engine(scored_config({.world = 1}));
    engine.set_finale([&](StepContext& context) { score_tokens(context, {&request, 1}); });
    EXPECT_THROW(engine.fit(), Error);
  }
}

}  // namespace
}  // namespace ranklab
