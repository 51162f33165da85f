// `ranklab data batch` against the batches that a run's ranks really requested and received.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu_sim/thread_world.h"
#include "core/runtime/engine.h"
#include "core/runtime/wrapped_data.h"
#include "tests/cli/run_program.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using Tokens = std::vector<int64_t>;
using Key = std::array<int64_t, 3>;  // global rank, step, microbatch

// Tokens and targets, as the ranks got them.
struct Seen {
  std::mutex mutex;
  std::map<Key, std::pair<Tokens, Tokens>> batches, validations;  // of these by batch, not by step
};

Tokens flat(const at::Tensor& tensor) {
  const at::Tensor all = tensor.contiguous();
  return {all.const_data_ptr<int64_t>(), all.const_data_ptr<int64_t>() + all.numel()};
}

class RecordedData : public WrappedData {
 public:
  RecordedData(std::unique_ptr<RankData> inner, int global_rank, Seen& seen)
      : WrappedData(std::move(inner)), global_rank_(global_rank), seen_(seen) {}
  Batch train_batch(int64_t step, int64_t microbatch) override {
    Batch batch = inner().train_batch(step, microbatch);
    const std::lock_guard lock(seen_.mutex);
    seen_.batches[{global_rank_, step, microbatch}] = {flat(batch.tokens_BS), flat(batch.targets_BS)};
    return batch;
  }
  Batch validation_batch(int64_t index, int64_t microbatch) override {
    Batch batch = inner().validation_batch(index, microbatch);
    const std::lock_guard lock(seen_.mutex);
    seen_.validations[{global_rank_, index, microbatch}] = {flat(batch.tokens_BS), flat(batch.targets_BS)};
    return batch;
  }

 private:
  int global_rank_;
  Seen& seen_;
};

class DataBatch : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(root_);
    fs::create_directories(root_);
    for (const char* name : {"a.txt", "b.txt"}) {
      std::ofstream text(root_ + "/" + name);
      for (int i = 0; i < 90; ++i) text << name << " line " << i * i << "\n";
    }
    const Outcome prepared =
        run("data prepare " + root_ + "/a.txt " + root_ + "/b.txt --shard-tokens 500 --out " + root_ + "/shards");
    ASSERT_EQ(prepared.exit_code, 0) << prepared.output;
    ASSERT_EQ(run("data prepare " + root_ + "/a.txt --out " + root_ + "/a").exit_code, 0);
  }
  void TearDown() override { fs::remove_all(root_); }
  static Outcome run(const std::string& arguments) {
    return run_command("'" RANKLAB_PROGRAM "' " + arguments + " 2>&1");
  }
  static nlohmann::json data_of(const std::string& arguments) {
    const Outcome outcome = run(arguments + " --json");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    return nlohmann::json::parse(outcome.output).at("data");
  }
  TrainConfig config(const std::string& data_path) const {
    TrainConfig c;
    c.model.num_layers = 2;
    c.model.hidden_size = 32;
    c.model.ffn_hidden_size = 64;
    c.model.num_attention_heads = 4;
    c.model.seq_length = 16;
    c.parallel = {.world = 4, .tp = 2};
    c.global_batch_size = 8;
    c.micro_batch_size = 2;
    c.train_iters = 40;
    c.eval_interval = 0;
    c.sample_tokens = 0;
    c.gemm = "mkl";
    c.data_path = data_path;
    return c;
  }
  static std::string text(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  const std::string root_ = temporary_path("ranklab_data_batch");
  const std::string flags_ = " --seq-length 16 --world-size 4 --tp 2 --micro-batch-size 2 --gbs 8 ";
};

// Each rank of the run got the tokens and targets that `data` shows. RETURNS: the number of microbatches.
size_t expect_trained_on(const nlohmann::json& data, int64_t step,
                         const std::map<Key, std::pair<Tokens, Tokens>>& seen) {
  size_t microbatches = 0;
  for (const auto& group : data.at("batch")) {
    for (const auto& microbatch : group.at("microbatches")) {
      ++microbatches;
      Tokens tokens, targets;
      for (const auto& sequence : microbatch.at("sequences")) {
        const Tokens row = sequence.at("tokens");
        tokens.insert(tokens.end(), row.begin(), row.end());
        targets.insert(targets.end(), row.begin() + 1, row.end());
        targets.push_back(sequence.at("last_target"));
      }
      for (const int64_t rank : group.at("ranks")) {
        const auto& got = seen.at({rank, step, microbatch.at("microbatch").get<int64_t>()});
        EXPECT_EQ(got.first, tokens) << "rank " << rank << ", step " << step;
        EXPECT_EQ(got.second, targets) << "rank " << rank << ", step " << step;
      }
    }
  }
  return microbatches;
}

void train(const TrainConfig& config, Seen& seen) {
  const RunPlan plan = resolve(config);
  RuntimeComponents parts = default_components(make_thread_world({.size = 4}), plan);
  parts.data_provider =
      wrap_data(parts.data_provider, [&](std::unique_ptr<RankData> data, const RankContext& ctx, const RunPlan&) {
        return std::make_unique<RecordedData>(std::move(data), ctx.global_rank(), seen);
      });
  RuntimeEngine(parts, plan).fit();
}

TEST_F(DataBatch, IsWhatTheRanksOfARunTrainedOn) {
  for (const std::string& path : {root_ + "/shards", "0.6 " + root_ + "/a 0.4 " + root_ + "/b.txt"}) {
    Seen seen;
    train(config(path), seen);
    ASSERT_EQ(seen.batches.size(), 4u * 40 * 2);
    // Step 30 is in the second pass over the data.
    for (const int64_t step : {0, 1, 30}) {
      const auto data = data_of("data batch --step " + std::to_string(step) + flags_ + "--data-path '" + path + "'");
      EXPECT_EQ(expect_trained_on(data, step, seen.batches), 4u);
      EXPECT_EQ(data.at("batch").at(0).at("ranks"), (std::vector<int>{0, 1}));
      EXPECT_EQ(data.at("batch").at(1).at("ranks"), (std::vector<int>{2, 3}));
    }
  }
}

TEST_F(DataBatch, OfAValidationIsWhatTheRanksOfARunWereValidatedOn) {
  const std::string own = root_ + "/a (token shards) and " + root_ + "/b.txt";
  for (const std::string& valid : {std::string(), "3 " + root_ + "/a 1 " + root_ + "/b.txt"}) {
    TrainConfig c = config(root_ + "/shards");
    c.train_iters = c.eval_interval = 2;
    c.eval_iters = 3;
    c.valid_data_path = valid;
    c.validation_fraction = valid.empty() ? 0.2 : 0;
    Seen seen;
    train(c, seen);
    const std::string settings = flags_ + "--data-path " + root_ + "/shards " +
                                 (valid.empty() ? "--validation-fraction 0.2" : "--valid-data-path '" + valid + "'");
    for (const int64_t batch : {0, 2}) {
      const auto data = data_of("data batch --validation --step " + std::to_string(batch) + settings);
      EXPECT_EQ(expect_trained_on(data, batch, seen.validations), 4u) << valid;
      EXPECT_EQ(data.at("source"), valid.empty() ? "the end of " + root_ + "/shards (token shards)" : own);
    }
    const Outcome shown = run("data batch --validation --step 0" + settings);
    EXPECT_THAT(shown.output, HasSubstr("batch 0 of a validation: 8 sequences of 16 tokens of "));
    EXPECT_THAT(shown.output, HasSubstr(valid.empty() ? "b.txt 846-861" : root_ + "/b.txt  sample 0"));
  }
}

TEST_F(DataBatch, WhereBatchesGrowHasThoseOfItsStep) {
  TrainConfig c = config(root_ + "/a");
  c.rampup_batch_size = "4 4 12";
  c.train_iters = 5;
  Seen seen;
  train(c, seen);
  ASSERT_EQ(seen.batches.size(), 4u * (3 * 1 + 2 * 2));  // steps of 4 sequences, then of 8
  for (const int64_t step : {0, 2, 3, 4}) {
    const auto data = data_of("data batch --step " + std::to_string(step) + flags_ +
                              "--rampup-batch-size 4 4 12 --data-path '" + root_ + "/a'");
    const int64_t sequences = step < 3 ? 4 : 8;
    EXPECT_EQ(data.at("global_batch_size"), sequences) << step;
    EXPECT_EQ(expect_trained_on(data, step, seen.batches), static_cast<size_t>(sequences / 2)) << step;
  }
}

TEST_F(DataBatch, ASequenceIsFoundInItsDocuments) {
  bool over_a_border = false;
  for (int step = 0; step < 30; ++step) {
    const auto data =
        data_of("data batch --step " + std::to_string(step) + flags_ + "--data-path " + root_ + "/shards");
    for (const auto& group : data.at("batch"))
      for (const auto& microbatch : group.at("microbatches"))
        for (const auto& sequence : microbatch.at("sequences")) {
          std::string found;
          for (const auto& part : sequence.at("documents"))
            found += text(part.at("document")).substr(part.at("offset"), part.at("tokens"));
          EXPECT_EQ(sequence.at("text"), found);
          EXPECT_EQ(sequence.at("offset").get<int64_t>(), sequence.at("sample").get<int64_t>() * 16);
          over_a_border = over_a_border || sequence.at("documents").size() == 2;
        }
  }
  EXPECT_TRUE(over_a_border) << "one sequence of the data has tokens of both files";
}

TEST_F(DataBatch, OfABlendNamesTheDataSetOfEachSequence) {
  const std::string blend = flags_ + "--data-path 3 " + root_ + "/a 1 " + root_ + "/b.txt";
  std::map<std::string, int> counts;
  for (int step = 0; step < 5; ++step) {
    const auto data = data_of("data batch --step " + std::to_string(step) + blend);
    EXPECT_EQ(data.at("data_sets").at(0).at("share"), 0.75);
    for (const auto& group : data.at("batch"))
      for (const auto& microbatch : group.at("microbatches"))
        for (const auto& sequence : microbatch.at("sequences")) {
          const std::string set = sequence.at("data_set");
          ++counts[set];
          const std::string file = root_ + (set == root_ + "/b.txt" ? "/b.txt" : "/a.txt");
          EXPECT_EQ(sequence.at("text"), text(file).substr(sequence.at("offset"), 16));
        }
  }
  EXPECT_EQ(counts, (std::map<std::string, int>{{root_ + "/a (token shards)", 30}, {root_ + "/b.txt", 10}}));
  const Outcome shown = run("data batch --step 5" + blend);
  EXPECT_THAT(shown.output, HasSubstr("passes over " + root_ + "/a (token shards), "));
  EXPECT_THAT(shown.output, HasSubstr(root_ + "/b.txt  sample "));
  const Outcome info = run("data info 3 " + root_ + "/a 1 " + root_ + "/shards");
  EXPECT_THAT(info.output, HasSubstr("75 % of the blend"));
  EXPECT_EQ(data_of("data info 3 " + root_ + "/a 1 " + root_ + "/shards").at(1).at("share"), 0.25);
}

TEST_F(DataBatch, OneRankAndText) {
  const Outcome shown = run("data batch --step 2 --rank 3" + flags_ + "--data-path " + root_ + "/a.txt");
  EXPECT_EQ(shown.exit_code, 0) << shown.output;
  EXPECT_THAT(shown.output, HasSubstr("dp rank 1: global rank 2 3\n"));
  EXPECT_THAT(shown.output, testing::Not(HasSubstr("dp rank 0")));
  EXPECT_THAT(shown.output, HasSubstr("a.txt"));
  EXPECT_EQ(data_of("data batch --step 2 --rank 3" + flags_ + "--mock-data").at("batch").size(), 1u);
}

// A run that resumes with another batch size draws the samples after those it has seen.
TEST_F(DataBatch, GoesOnBehindACheckpoint) {
  const std::string model =
      " --num-layers 2 --hidden-size 32 --ffn-hidden-size 64 --num-attention-heads 4 --sample-tokens 0 "
      "--eval-interval 0 --gemm mkl --log-dir " +
      root_ + "/log --data-path " + root_ + "/shards ";
  const Outcome trained = run("train --train-iters 3 --save " + root_ + "/ck" + model + flags_);
  ASSERT_EQ(trained.exit_code, 0) << trained.output;
  const std::string load = "--load " + root_ + "/ck" + model;
  const auto same = data_of("data batch --step 4 " + load + flags_);
  EXPECT_EQ(same.at("batch"), data_of("data batch --step 4 " + model + flags_).at("batch"));
  // Sixteen at a time, step 3 begins where it begins with eight.
  const auto larger =
      data_of("data batch --step 3 " + load + " --seq-length 16 --world-size 4 --tp 2 --micro-batch-size 2 --gbs 16");
  const auto usual = data_of("data batch --step 3 " + load + flags_);
  EXPECT_EQ(larger.at("batch").at(0).at("microbatches").at(0), usual.at("batch").at(0).at("microbatches").at(0));
  const Outcome before = run("data batch --step 2 " + load + flags_);
  EXPECT_EQ(before.exit_code, 2) << before.output;
  EXPECT_THAT(before.output, HasSubstr("resumes from a checkpoint after this step"));
}

// Where training separates documents is where the lines of the input end.
TEST_F(DataBatch, DocumentsEndWhereThoseOfTheInputDo) {
  std::vector<std::string> texts;
  for (int i = 0; i < 60; ++i) texts.push_back("document " + std::to_string(i) + std::string(i % 23, '.'));
  {
    std::ofstream lines(root_ + "/d.jsonl");
    for (const std::string& one : texts) lines << nlohmann::json{{"id", 7}, {"body", one}}.dump() << "\n";
  }
  std::ofstream(root_ + "/e.txt") << "a text behind them";
  texts.push_back("a text behind them");
  const Outcome prepared = run("data prepare " + root_ + "/d.jsonl " + root_ + "/e.txt --json-key body --append-eod " +
                               "--eod-token 256 --shard-tokens 300 --out " + root_ + "/documents");
  ASSERT_EQ(prepared.exit_code, 0) << prepared.output;
  Tokens want;
  std::set<int64_t> begins;
  for (const std::string& one : texts) {
    begins.insert(static_cast<int64_t>(want.size()));
    for (const char c : one) want.push_back(static_cast<unsigned char>(c));
    want.push_back(256);
  }
  const std::string ends = " --vocab-size 384 --eod-token 256 --reset-attention-mask --reset-position-ids ";
  size_t seen = 0;
  for (int step = 0; step < 6; ++step) {
    const auto data = data_of("data batch --eod-mask-loss --step " + std::to_string(step) + flags_ + ends +
                              "--data-path " + root_ + "/documents");
    for (const auto& group : data.at("batch"))
      for (const auto& microbatch : group.at("microbatches"))
        for (const auto& sequence : microbatch.at("sequences")) {
          const auto offset = sequence.at("offset").get<int64_t>();
          EXPECT_EQ(sequence.at("tokens"), Tokens(want.begin() + offset, want.begin() + offset + 16));
          Tokens starts = {0};
          for (int64_t i = 1; i < 16; ++i)
            if (begins.contains(offset + i)) starts.push_back(i);
          EXPECT_EQ(sequence.at("document_starts"), starts);
          seen += starts.size() - 1;
        }
  }
  EXPECT_GT(seen, 20u);
  const Outcome shown = run("data batch --step 0" + flags_ + ends + "--data-path " + root_ + "/documents");
  EXPECT_THAT(shown.output, HasSubstr("documents begin at 0 "));
  const Outcome trained =
      run("train --train-iters 1 --num-layers 1 --hidden-size 32 --ffn-hidden-size 64 --num-attention-heads 4 "
          "--eval-interval 0 --log-dir " +
          root_ + "/log --eod-mask-loss" + flags_ + ends + "--data-path " + root_ + "/documents");
  EXPECT_EQ(trained.exit_code, 0) << trained.output;
}

TEST_F(DataBatch, MistakesAreNamed) {
  const Outcome rank = run("data batch --step 0 --rank 9" + flags_ + "--mock-data");
  EXPECT_EQ(rank.exit_code, 2);
  EXPECT_THAT(rank.output, HasSubstr("[--rank] no such rank; got 9; want 0 to 3"));
  EXPECT_EQ(run("data batch" + flags_).exit_code, 2) << "without --step";
}

}  // namespace
}  // namespace ranklab
