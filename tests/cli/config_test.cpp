// Settings from files, the environment, --set and flags, as a user gives them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/ranklab_program.h"

namespace ranklab {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

class ConfigCli : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::path(testing::TempDir()) / ("ranklab_config_" + std::to_string(::getpid()));
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(directory_ / name) << text;
    return (directory_ / name).string();
  }
  fs::path directory_;
};

nlohmann::json shown(const std::string& arguments, const std::string& environment = "") {
  const Outcome run = ranklab_and_errors("config show --origin --json " + arguments, environment);
  EXPECT_EQ(run.exit_code, 0) << run.output;
  return nlohmann::json::parse(run.output).at("data");
}

TEST_F(ConfigCli, EachSourceOverridesTheOneBelow) {
  const std::string a = file("a.toml", "[optim]\nlr = 0.1\n[train]\nseed = 1\n");
  const std::string b = file("b.toml", "[optim]\nlr = 0.2\n");
  const std::string environment = "RANKLAB_OPTIM_LR=0.3";
  const auto expect = [](const nlohmann::json& data, double lr, const std::string& origin) {
    EXPECT_EQ(data.at("optim.lr").at("value"), lr);
    EXPECT_EQ(data.at("optim.lr").at("origin"), origin);
  };
  const std::string files = "-c " + a + " --config " + b;
  expect(shown(""), 0.003, "default");
  expect(shown("-c " + a), 0.1, a + ":2");
  expect(shown(files), 0.2, b + ":2");
  expect(shown(files, environment), 0.3, "environment RANKLAB_OPTIM_LR");
  expect(shown(files + " --set optim.lr=0.4", environment), 0.4, "--set");
  expect(shown("--lr 0.5 " + files + " --set optim.lr=0.4", environment), 0.5, "flag --lr");
  EXPECT_EQ(shown(files).at("train.seed").at("origin"), a + ":4");
}

TEST_F(ConfigCli, PrintedConfigurationIsTheSameRun) {
  const std::string flags =
      "train --preset peer_s --num-layers 3 --tp 4 --lr 0.1234567890123 --sample-prompt 'a \"b\"'";
  const Outcome first = ranklab_and_errors(flags + " --print-config");
  ASSERT_EQ(first.exit_code, 0) << first.output;
  const std::string printed = file("printed.toml", first.output);
  const Outcome second = ranklab_and_errors("train --print-config -c " + printed);
  EXPECT_EQ(second.exit_code, 0);
  EXPECT_EQ(first.output, second.output);
  EXPECT_THAT(first.output, AllOf(HasSubstr("num_layers = 3"), HasSubstr("lr = 0.1234567890123\n")));
}

TEST_F(ConfigCli, DryRunSaysLayoutAndMemoryAndRunsNothing) {
  const Outcome run =
      ranklab_and_errors("train --dry-run --tp 4 --preset llama_8b --log-dir " + (directory_ / "log").string());
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, AllOf(HasSubstr("dp 2 x tp 4"), HasSubstr("optimizer"), HasSubstr("tokens a step")));
  EXPECT_FALSE(fs::exists(directory_ / "log"));
  EXPECT_EQ(ranklab_and_errors("train --dry-run --tp 3").exit_code, 2);
}

TEST_F(ConfigCli, AFileTrains) {
  const std::string path = file("run.toml",
                                "[model]\nnum_layers = 1\nhidden_size = 32\nffn_hidden_size = 64\n"
                                "num_attention_heads = 4\nseq_length = 32\n[parallel]\nworld_size = 2\ntp = 1\n"
                                "[train]\ntrain_iters = 1\nglobal_batch_size = 2\n[data]\nmock = true\n"
                                "eval_interval = 0\n[sample]\ntokens = 0\n[trace]\nenabled = false\n");
  const Outcome run = ranklab_and_errors("train -c " + path + " --log-dir " + (directory_ / "log").string());
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, AllOf(HasSubstr("2 rank threads"), HasSubstr("done after 1 step")));
}

// A pipe can be read once: its settings must still be known when a refusal names their source.
TEST_F(ConfigCli, APipeIsASourceLikeAFile) {
  const Outcome run = run_command("bash -c '" RANKLAB_PROGRAM " train -c <(printf \"[parallel]\\ntp = 3\\n\") 2>&1'");
  EXPECT_EQ(run.exit_code, 2) << run.output;
  EXPECT_THAT(run.output, AllOf(HasSubstr("parallel.tp from /dev/fd/"), HasSubstr(":2]"), HasSubstr("--tp 3")));
}

TEST_F(ConfigCli, ValidateChecksTheFileAndTheConstraints) {
  EXPECT_EQ(ranklab_and_errors("config validate " + file("good.toml", "[parallel]\ntp = 4\n")).exit_code, 0);
  const Outcome typo = ranklab_and_errors("config validate " + file("typo.toml", "[parallel]\n\ntpp = 4\n"));
  EXPECT_EQ(typo.exit_code, 2);
  EXPECT_THAT(typo.output, AllOf(HasSubstr("typo.toml:3"), HasSubstr("did you mean 'tp'")));
  EXPECT_EQ(ranklab_and_errors("config validate " + file("odd.toml", "[parallel]\ntp = 3\n")).exit_code, 2);
}

TEST_F(ConfigCli, DiffShowsWhatDiffers) {
  const std::string a = file("a.toml", "[optim]\nlr = 0.1\n");
  const std::string b = file("b.toml", "[optim]\nlr = 0.2\nclip_grad = 1.0\n");
  const Outcome run = ranklab_and_errors("config diff " + a + " " + b);
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.output, AllOf(HasSubstr("optim.lr"), HasSubstr("0.1 -> 0.2"), Not(HasSubstr("clip_grad"))));
  EXPECT_THAT(ranklab_and_errors("config diff " + a + " " + a).output, HasSubstr("no differences"));
}

TEST_F(ConfigCli, SchemaAndMistakes) {
  const Outcome schema = ranklab_and_errors("config schema");
  EXPECT_EQ(schema.exit_code, 0);
  EXPECT_TRUE(nlohmann::json::parse(schema.output).at("properties").contains("model"));
  const Outcome variable = ranklab_and_errors("config show", "RANKLAB_OPTIM_LRR=1");
  EXPECT_EQ(variable.exit_code, 2);
  EXPECT_THAT(variable.output, HasSubstr("RANKLAB_OPTIM_LR"));
  EXPECT_EQ(ranklab_and_errors("config show --set optim.lr=fast").exit_code, 2);
}

}  // namespace
}  // namespace ranklab
