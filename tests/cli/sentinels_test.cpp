// Sentinels and dumps as a user of the program meets them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/checkpoint/safetensors.h"
#include "tests/cli/ranklab_program.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Sentinels : public testing::Test {
 protected:
  void SetUp() override { fs::remove_all(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  Outcome train(const std::string& options, const std::string& layout = "--tp 2 --pp 2 --dp 1") const {
    return ranklab("train " + layout +
                   " --num-layers 2 --hidden-size 32 --num-attention-heads 4 "
                   "--seq-length 32 --gbs 8 --mock-data --sample-tokens 0 --no-trace --eval-interval 0 --log-dir " +
                   folder_ + " " + options);
  }
  std::vector<nlohmann::json> lines() const {
    std::vector<nlohmann::json> all;
    std::ifstream in(folder_ + "/sentinels.jsonl");
    for (std::string line; std::getline(in, line);) all.push_back(nlohmann::json::parse(line));
    return all;
  }
  const std::string folder_ = temporary_path("ranklab_sentinels");
};

TEST_F(Sentinels, AreOffUnlessAskedFor) {
  const Outcome run = train("--train-iters 2");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, Not(HasSubstr("  sentinel ")));
  EXPECT_FALSE(fs::exists(folder_ + "/sentinels.jsonl"));
}

TEST_F(Sentinels, WriteWhatTheyMeasureAndGoOnAfterAWarning) {
  const Outcome run = train(
      "--train-iters 3 --sentinel-mode standard --sentinel 'loss_raw warn=..1; data_repeated off' "
      "--tensorboard-dir " +
      folder_ + "/board");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  const std::string told = "sentinel loss_raw: Loss/train_raw is ";
  const size_t first = run.output.find(told);
  ASSERT_NE(first, std::string::npos) << run.output;
  EXPECT_EQ(run.output.find(told, first + 1), std::string::npos) << "told once";
  const auto steps = lines();
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[1]["step"], 1);
  EXPECT_TRUE(steps[0]["values"].contains("Gradients/block_1/norm"));
  EXPECT_FALSE(steps[1]["values"].contains("Gradients/block_1/norm"));  // looks at tensors in one of ten steps
  EXPECT_EQ(steps[2]["fired"][0]["sentinel"], "loss_raw");
  EXPECT_EQ(steps[2]["fired"][0]["begins"], false);
  std::string events;
  for (const auto& entry : fs::directory_iterator(folder_ + "/board")) events = text_of_file(entry.path().string());
  EXPECT_THAT(events, HasSubstr("Gradients/block_1/norm"));
}

TEST_F(Sentinels, EndTheRunWithAnExitCodeOfTheirOwn) {
  const std::string options = "--train-iters 5 --sentinel-mode minimal --sentinel 'loss_raw stop=..1'";
  const Outcome run = train(options + " 2>&1");
  EXPECT_EQ(run.exit_code, 10) << run.output;
  EXPECT_THAT(run.output, AllOf(HasSubstr("stopped by a sentinel after 1 step "), HasSubstr("[sentinels]"),
                                HasSubstr("step 0: loss_raw: Loss/train_raw is "), HasSubstr("stop=none")));
  const Outcome json = train(options + " --json 2>/dev/null");
  EXPECT_EQ(json.exit_code, 10);
  const std::string last = json.output.substr(json.output.rfind('\n', json.output.size() - 2) + 1);
  EXPECT_EQ(nlohmann::json::parse(last)["ok"], false) << json.output;
  EXPECT_THAT(json.output, HasSubstr("\"sentinel\":\"loss_raw\""));
}

// Ranks that are processes end together, write their dumps beside each other, and are not started again.
TEST_F(Sentinels, EndProcessesAsTheyEndThreads) {
  const Outcome run = ranklab(
      "launch --nproc-per-node 4 --max-restarts 1 train --tp 2 --num-layers 2 --hidden-size 32 --num-attention-heads 4 "
      "--seq-length 32 --gbs 8 --mock-data --sample-tokens 0 --no-trace --eval-interval 0 --train-iters 5 "
      "--sentinel-mode standard --sentinel 'loss_raw stop=..1 in-a-row=2 action=dump' --log-dir " +
      folder_ + " 2>&1");
  EXPECT_EQ(run.exit_code, 10) << run.output;
  EXPECT_THAT(run.output,
              AllOf(HasSubstr("stopped by a sentinel after 2 steps"), Not(HasSubstr("restarting all ranks"))));
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_TRUE(fs::exists(folder_ + "/dump/sentinel/step-0/rank-" + std::to_string(rank) + ".safetensors")) << rank;
}

TEST_F(Sentinels, SettingsComeFromAFileToo) {
  fs::create_directories(folder_);
  std::ofstream(folder_ + "/run.toml") << "[sentinel]\nmode = \"minimal\"\nrules = \"loss_raw stop=..1\"\n";
  EXPECT_EQ(train("--train-iters 3 --config " + folder_ + "/run.toml").exit_code, 10);
}

TEST_F(Sentinels, DumpsAreOneFileOfEachRank) {
  const Outcome run = train("--train-iters 2 --dump 'layers.1.*' --at 'step=1 rank=2,3 microbatch=0'");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_FALSE(fs::exists(folder_ + "/dump/step-1/rank-0.safetensors"));
  EXPECT_FALSE(fs::exists(folder_ + "/dump/step-0"));
  const SafetensorsFile file(folder_ + "/dump/step-1/rank-3.safetensors");
  EXPECT_EQ(file.metadata().at("coordinates"), "pp 1 of 2, tp 1 of 2");
  const TensorEntry& output = file.tensor("layers.1.mlp/output/0");
  EXPECT_EQ(output.shape, (std::vector<int64_t>{16, 2, 32}));
  const auto slice = nlohmann::json::parse(file.metadata().at("slice/layers.1.mlp/output/0"));
  EXPECT_EQ(slice["positions"], nlohmann::json::parse("[[16, 16, 1]]"));  // the second half, by sequence parallelism
  EXPECT_NE(file.find("grad/layers.1.attention.qkv.weight"), nullptr);
  EXPECT_EQ(file.find("layers.1.mlp/output/1"), nullptr);
  EXPECT_EQ(ranklab("ckpt inspect " + folder_ + "/dump/step-1/rank-3.safetensors").exit_code, 0);
}

// The layer that --watch runs on one rank has no rank 3; the run has.
TEST_F(Sentinels, ARunFromACheckpointDumpsAStepOfItsOwn) {
  const std::string save = folder_ + "_ck", load = "--train-iters 3 --load " + save + " --dump final_norm.weight ";
  EXPECT_EQ(train("--train-iters 2 --save " + save).exit_code, 0);
  const Outcome run = train(load + "2>&1");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_TRUE(fs::exists(folder_ + "/dump/step-2/rank-2.safetensors"));
  EXPECT_THAT(run.output, Not(HasSubstr("--dump writes nothing")));
  const Outcome over = train(load + "--at step=1 2>&1");
  EXPECT_EQ(over.exit_code, 0) << over.output;
  EXPECT_THAT(over.output, HasSubstr("--dump writes nothing: this run's steps are 2 to 2, and --at ends with step 1"));
  fs::remove_all(save);
}

TEST_F(Sentinels, DumpsOfOneRankGoWithAWatch) {
  const Outcome run = train("--train-iters 2 --watch 1 --dump 'layers.1.*' --at 'step=0 rank=3'");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_TRUE(fs::exists(folder_ + "/dump/step-0/rank-3.safetensors"));
}

TEST_F(Sentinels, ZeroAndMixturesAreInTheLog) {
  const Outcome zero = train("--train-iters 2 --zero-stage 3 --zero-debug", "--dp 4");
  EXPECT_THAT(zero.output,
              testing::ContainsRegex("\\[ZeRO Debug\\]\\[step=1\\] rank 0 reduced [0-9]+ buckets .*freed"));
  const Outcome mixture = train("--train-iters 2 --num-experts 4 --moe-ffn-hidden-size 32", "--ep 2 --dp 4");
  EXPECT_EQ(mixture.exit_code, 0) << mixture.output;
  EXPECT_THAT(mixture.output, HasSubstr("task / aux / total / drop"));
  EXPECT_THAT(text_of_file(folder_ + "/metrics.jsonl"), HasSubstr("\"total_loss\":"));
}

}  // namespace
}  // namespace ranklab
