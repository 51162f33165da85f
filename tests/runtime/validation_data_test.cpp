// Validation on its own data: the same loss as on a part of the training data with these tokens, in every layout that
// of one rank, and after a resume that of the run that was never stopped.
#include <gmock/gmock.h>

#include <fstream>

#include "core/base/error.h"
#include "core/data/token_shard.h"
#include "core/runtime/training_data.h"
#include "tests/runtime/checkpoint_run.h"

namespace ranklab::checkpoint_runs {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const Settings kLoneRank = {{"parallel.world_size", "1"}};

class ValidationData : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(root_);
    for (int i = 0; text_.size() < 16 * 100 + 1; ++i) text_ += "line " + std::to_string(i * i) + "\n";
    text_.resize(16 * 100 + 1);
    std::ofstream(at("all")) << text_;
    std::ofstream(at("head")) << text_.substr(0, 16 * 80 + 1);
    std::ofstream(at("tail")) << text_.substr(16 * 80);
    std::ofstream(at("other")) << std::string(16 * 30, 'o');
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string at(const std::string& name) const { return root_ + "/" + name; }
  Settings settings(const std::string& path, const Settings& more) const {
    const Settings all = {{"train.train_iters", "6"},        {"train.global_batch_size", "8"},
                          {"data.path", at(path)},           {"data.eval_interval", "2"},
                          {"data.eval_iters", "3"},          {"model.seq_length", "16"},
                          {"trace.enabled", "false"},        {"sample.tokens", "0"},
                          {"optim.clip_grad", "0"},          {"train.micro_batch_size", "1"},
                          {"train.accumulation", "pairwise"}};
    return all + kDense + Settings{{"model.tie_embeddings", "false"}} + more;
  }
  Settings validated_on(const std::string& valid, const Settings& more = kLoneRank) const {
    return settings("head", Settings{{"data.valid_path", valid}} + more);
  }
  std::string refusal(const Settings& all) const {
    try {
      train(all);
    } catch (const Error& error) {
      return error.what();
    }
    return "trained";
  }
  const std::string root_ = temporary_path("ranklab_validation_data_test");
  std::string text_;
};

TEST_F(ValidationData, IsWhatAPartOfTheTrainingsWithTheseTokensWouldBe) {
  const auto part = train(settings("all", kLoneRank + Settings{{"data.validation_fraction", "0.2"}}));
  ASSERT_EQ(part->validations.size(), 3u);
  const auto own = train(validated_on(at("tail")));
  EXPECT_EQ(own->validations, part->validations);
  EXPECT_EQ(curve(*own), curve(*part));
  EXPECT_NE(train(validated_on(at("other")))->validations, part->validations);
  // All of the training's data are trained on.
  const TrainingData data = open_training_data(plan_of(validated_on(at("tail"))));
  EXPECT_EQ(data.sets[0].dataset->samples(Split::kTrain), 80);
  EXPECT_EQ(data.validation_sets[0].dataset->samples(Split::kTrain), 20);
  EXPECT_THAT(data.describe(), HasSubstr(" 80 training sequences; validation on " + at("tail") +
                                         ", 321 byte tokens, "
                                         "20 sequences"));
}

TEST_F(ValidationData, EveryLayoutValidatesAsOneRankDoes) {
  const std::string blend = "3 " + at("tail") + " 1 " + at("other");
  const auto one = train(validated_on(blend));
  ASSERT_EQ(one->validations.size(), 3u);
  for (const Settings& same : {Settings{{"parallel.world_size", "4"}, {"parallel.dp", "4"}},
                               Settings{{"parallel.world_size", "4"}, {"parallel.pp", "2"}}})
    EXPECT_EQ(train(validated_on(blend, same))->validations, one->validations);
  for (const char* axis : {"tp", "cp"}) {
    const auto split =
        train(validated_on(blend, {{"parallel.world_size", "4"}, {std::string("parallel.") + axis, "2"}}));
    for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(split->validations[i], one->validations[i], 1e-5) << axis << " " << i;
  }
}

TEST_F(ValidationData, GoesOnTheSame) {
  const auto whole = train(validated_on(at("tail")));
  train(validated_on(at("tail")) + saving(at("part")), 3);
  const auto rest =
      train(validated_on(at("tail"), {{"parallel.world_size", "2"}, {"parallel.dp", "2"}}) + loading(at("part")));
  ASSERT_EQ(rest->first_step, 3);
  EXPECT_EQ(rest->validations, (std::vector{whole->validations[1], whole->validations[2]}));
  EXPECT_THAT(rest->loaded, testing::Not(HasSubstr("settings that changed")));
  // It trains as before, so other validation data is allowed.
  const auto other = train(validated_on(at("other")) + loading(at("part")));
  const auto all = curve(*whole);
  EXPECT_EQ(curve(*other), std::vector(all.begin() + 3, all.end()));
  EXPECT_THAT(other->loaded, HasSubstr("settings that changed: --valid-data-path " + at("other") + " (" + at("tail")));
  EXPECT_THAT(refusal(settings("head", kLoneRank) + loading(at("part"))),
              HasSubstr("pass the same --data-path (and --validation-fraction or --valid-data-path)"));
}

TEST_F(ValidationData, IsOfTheTrainingsTokensAndInsteadOfAPartOfThem) {
  std::ofstream(at("n.bin"), std::ios::binary) << std::string(4000, 'x');
  prepare_shards({at("n.bin")}, at("n"), {.format = {.from = "nanogpt"}});
  EXPECT_THAT(refusal(validated_on(at("n")) + Settings{{"model.vocab_size", "40000"}}),
              AllOf(HasSubstr("--valid-data-path"), HasSubstr("training and validation have different tokens")));
  EXPECT_THAT(refusal(validated_on("1 " + at("tail") + " 1 " + at("tail"))),
              AllOf(HasSubstr("--valid-data-path"), HasSubstr("names one data set twice")));
  EXPECT_THAT(refusal(validated_on(at("tail")) + Settings{{"data.validation_fraction", "0.1"}}),
              HasSubstr("--valid-data-path and --validation-fraction contradict each other"));
  EXPECT_EQ(refusal(validated_on(at("tail")) + Settings{{"data.validation_fraction", "0"}}), "trained");
  std::ofstream(at("short")) << "short";
  EXPECT_THAT(refusal(validated_on(at("short"))), HasSubstr("data " + at("short") + "] the text is too short"));
}

}  // namespace
}  // namespace ranklab::checkpoint_runs
