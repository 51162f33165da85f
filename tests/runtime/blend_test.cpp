// Training on a blend of data sets: every layout trains as one rank does, and a run that resumes in the middle of the
// blend equals the run that was never stopped.
#include <gmock/gmock.h>

#include <fstream>

#include "core/base/error.h"
#include "core/data/token_shard.h"
#include "core/runtime/training_data.h"
#include "tests/runtime/checkpoint_run.h"

namespace ranklab::checkpoint_runs {
namespace {

using ::testing::HasSubstr;

class Blend : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(root_);
    for (const char* name : {"a", "b"}) {
      std::ofstream text(at(name) + ".txt");
      for (int i = 0; i < 60; ++i) text << name << " line " << i * i << "\n";
      text.close();
      prepare_shards({at(name) + ".txt"}, at(name),
                     {.width = *name == 'a' ? TokenWidth::kUint16 : TokenWidth::kUint32, .shard_tokens = 300});
    }
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string at(const std::string& name) const { return root_ + "/" + name; }
  Settings settings(const Settings& layout, const std::string& weights = "7 3") const {
    const size_t space = weights.find(' ');
    const std::string path = weights.substr(0, space) + " " + at("a") + " " + weights.substr(space + 1) + " " + at("b");
    Settings all = {
        {"train.train_iters", "6"},      {"train.global_batch_size", "8"},  {"data.path", path},
        {"data.eval_interval", "3"},     {"data.eval_iters", "2"},          {"data.validation_fraction", "0.2"},
        {"model.seq_length", "16"},      {"trace.enabled", "false"},        {"sample.tokens", "0"},
        {"train.micro_batch_size", "1"}, {"train.accumulation", "pairwise"}};
    return all + kDense + Settings{{"model.tie_embeddings", "false"}, {"optim.clip_grad", "0"}} + layout;
  }
  const std::string root_ = temporary_path("ranklab_blend_test");
};

// Norms of pipeline stages are added in a different order.
std::vector<double> losses(const RunRecord& record) {
  std::vector<double> all;
  for (const StepMetrics& step : record.steps) all.push_back(step.loss);
  return all;
}

const Settings kOneRank = {{"parallel.world_size", "1"}};

TEST_F(Blend, EveryLayoutTrainsAsOneRankDoes) {
  const auto one = train(settings(kOneRank));
  ASSERT_EQ(one->steps.size(), 6u);
  EXPECT_EQ(curve(*train(settings({{"parallel.world_size", "4"}, {"parallel.dp", "4"}}))), curve(*one));
  EXPECT_EQ(losses(*train(settings({{"parallel.world_size", "4"}, {"parallel.pp", "2"}}))), losses(*one));
  const auto cp2 = train(settings({{"parallel.world_size", "4"}, {"parallel.cp", "2"}}));
  for (size_t step = 0; step < 6; ++step) {
    EXPECT_NEAR(cp2->steps[step].loss, one->steps[step].loss, 1e-5) << step;
    EXPECT_NEAR(cp2->steps[step].grad_norm, one->steps[step].grad_norm, 1e-5) << step;
  }
  EXPECT_NE(curve(*train(settings(kOneRank, "6 4"))), curve(*one)) << "weights have no effect";
}

TEST_F(Blend, GoesOnInTheMiddleOnAnotherLayout) {
  const auto whole = train(settings(kOneRank) + saving(at("whole")));
  train(settings(kOneRank) + saving(at("part")), 3);
  const Settings dp2 = {{"parallel.world_size", "2"}, {"parallel.dp", "2"}};
  const auto rest = train(settings(dp2, "0.7 0.3") + saving(at("part")) + loading(at("part")));
  ASSERT_EQ(rest->first_step, 3);
  const auto all = curve(*whole);
  EXPECT_EQ(curve(*rest), std::vector(all.begin() + 3, all.end()));
  EXPECT_EQ(state_difference(at("whole"), at("part")), "");
}

// 0.07 / (0.07 + 0.03) has other last digits than 7 / 10.
TEST_F(Blend, TheSameSharesAsOtherWeightsGoOn) {
  const auto whole = train(settings(kOneRank));
  train(settings(kOneRank) + saving(at("part")), 3);
  const auto rest = train(settings(kOneRank, "0.07 0.03") + loading(at("part")));
  const auto all = curve(*whole);
  EXPECT_EQ(curve(*rest), std::vector(all.begin() + 3, all.end()));
}

TEST_F(Blend, WithoutWeightsEverySequenceComesOnceAPass) {
  std::ofstream(at("long") + ".txt") << std::string(16 * 100, 'x');
  std::ofstream(at("short") + ".txt") << std::string(16 * 25, 'y');
  const std::string path = "by-size " + at("long") + ".txt " + at("short") + ".txt";
  const RunPlan plan = plan_of(settings(kOneRank) + Settings{{"data.path", path}});
  const TrainingData data = open_training_data(plan);
  ASSERT_EQ(data.sets.size(), 2u);
  const int64_t longer = data.sets[0].dataset->samples(Split::kTrain);
  const int64_t shorter = data.sets[1].dataset->samples(Split::kTrain);
  EXPECT_GT(longer, 3 * shorter);
  EXPECT_EQ(data.blend->counts_before(longer + shorter), (std::vector<int64_t>{longer, shorter}));
}

TEST_F(Blend, OtherWeightsOrSetsAreRefused) {
  train(settings(kOneRank) + saving(at("part")), 2);
  const auto refusal = [&](Settings other) -> std::string {
    try {
      train(other + loading(at("part")));
    } catch (const Error& error) {
      return error.what();
    }
    return "trained";
  };
  EXPECT_THAT(
      refusal(settings(kOneRank, "6 4")),
      HasSubstr("got share of data set 1 0.59999999999999998; want share of data set 1 0.69999999999999996, as saved"));
  EXPECT_THAT(refusal(settings(kOneRank) + Settings{{"data.path", at("a")}}),
              HasSubstr("the data is not what the run was trained on"));
  EXPECT_THAT(refusal(settings(kOneRank) + Settings{{"data.path", "7 " + at("b") + " 3 " + at("a")}}),
              HasSubstr("data set 1"));
  EXPECT_EQ(refusal(settings(kOneRank, "6 4") + Settings{{"checkpoint.finetune", "true"}}), "trained");
}

// nanoGPT's shakespeare_char has 65 characters.
TEST_F(Blend, ShardsOfFewTokensNeedNoVocabularyOfBytes) {
  std::ofstream tokens(at("n.bin"), std::ios::binary);
  for (int i = 0; i < 2000; ++i) tokens << static_cast<char>(i == 9 ? 64 : i * i % 64) << '\0';
  tokens.close();
  prepare_shards({at("n.bin")}, at("n"), {.format = {.from = "nanogpt"}});
  const auto with = [&](const std::string& path, const char* vocabulary) {
    return settings(kOneRank) + Settings{{"data.path", path}, {"model.vocab_size", vocabulary}};
  };
  const auto refusal = [&](const Settings& all) -> std::string {
    try {
      train(all);
    } catch (const Error& error) {
      return error.what();
    }
    return "trained";
  };
  EXPECT_EQ(refusal(with(at("n"), "65")), "trained");
  EXPECT_THAT(refusal(with(at("n"), "64")), HasSubstr("want --vocab-size 65 or more"));
  EXPECT_THAT(refusal(with(at("a") + ".txt", "255")), HasSubstr("the bytes of a text are 256 tokens"));
  EXPECT_THAT(refusal(with("1 " + at("n") + " 1 " + at("a") + ".txt", "65")), HasSubstr("256 or more"));
}

TEST_F(Blend, SetsHaveOneTokenizerAndAreDifferent) {
  std::ofstream(at("n.bin"), std::ios::binary) << std::string(4000, 'x');
  prepare_shards({at("n.bin")}, at("n"), {.format = {.from = "nanogpt"}});
  const auto refusal = [&](const std::string& path) -> std::string {
    try {
      train(settings(kOneRank) + Settings{{"data.path", path}, {"model.vocab_size", "40000"}});
    } catch (const Error& error) {
      return error.what();
    }
    return "trained";
  };
  EXPECT_THAT(refusal("1 " + at("a") + " 1 " + at("n")), HasSubstr("different tokens"));
  EXPECT_THAT(refusal("1 " + at("a") + " 1 " + at("a") + "/../a"), HasSubstr("names one data set twice"));
}

}  // namespace
}  // namespace ranklab::checkpoint_runs
