// Token shards from the command line, and the completion scripts, asked as a shell asks them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "tests/cli/run_program.h"

namespace ranklab {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;
namespace fs = std::filesystem;

std::string output_of(const std::string& command, int want_exit = 0) {
  const Outcome outcome = run_command(command);
  EXPECT_EQ(outcome.exit_code, want_exit) << command;
  return outcome.output;
}

class DataCommand : public testing::Test {
 protected:
  void SetUp() override {
    root_ = temporary_path("ranklab_data_command");
    fs::remove_all(root_);
    fs::create_directories(root_);
    std::ofstream text(root_ / "text.txt");
    for (int i = 0; i < 700; ++i) text << "line " << i * i << " of the text\n";
  }
  void TearDown() override { fs::remove_all(root_); }
  std::string at(const std::string& name) const { return (root_ / name).string(); }
  std::string ranklab(const std::string& arguments, int want_exit = 0) const {
    return output_of("'" RANKLAB_PROGRAM "' " + arguments + " 2>&1", want_exit);
  }
  std::string losses(const std::string& data) const {
    ranklab(
        "train --num-layers 1 --hidden-size 32 --ffn-hidden-size 64 --num-attention-heads 4 --seq-length 32 --gbs 8 "
        "--lr-warmup-iters 0 --sample-tokens 0 --train-iters 4 --eval-interval 2 --eval-iters 1 --no-trace "
        "--tensorboard-dir " +
        at("tb") + " --log-dir " + at("run") + " --data-path " + data);
    std::ifstream in(at("run") + "/metrics.jsonl");
    std::string kept;  // the exact digits of loss and norm; speed differs
    for (std::string line; std::getline(in, line);) kept += line.substr(0, line.find("\"lr\""));
    std::ifstream log(at("run") + "/log.txt");
    return kept + std::string(std::istreambuf_iterator<char>(log), {});
  }
  fs::path root_;
};

TEST_F(DataCommand, TrainingOnShardsIsTrainingOnTheFile) {
  ranklab("data prepare " + at("text.txt") + " --out " + at("shards") + " --shard-tokens 1000 --dtype uint32");
  EXPECT_THAT(ranklab("data info " + at("shards")), testing::HasSubstr("uint32, vocabulary 256, complete"));
  const std::string want = losses(at("text.txt"));
  EXPECT_THAT(want, testing::HasSubstr("3 val "));
  EXPECT_EQ(losses(at("shards")), want);
  EXPECT_FALSE(fs::is_empty(at("tb")));
}

TEST_F(DataCommand, SaysThatNothingIsLeftAndRefusesDamage) {
  EXPECT_THAT(ranklab("data prepare " + at("text.txt") + " --out " + at("one")), testing::HasSubstr(" in 1 shard; "));
  const std::string prepare = "data prepare " + at("text.txt") + " --out " + at("shards") + " --shard-tokens 1000";
  ranklab(prepare);
  EXPECT_THAT(ranklab(prepare), testing::HasSubstr("nothing to do"));
  fs::resize_file(root_ / "shards" / "shard_00001.bin", 100);
  const std::string train = ranklab("train --log-dir " + at("run") + " --data-path " + at("shards"), 8);
  EXPECT_THAT(train, testing::AllOf(testing::HasSubstr("shard_00001.bin"), testing::HasSubstr("cut off")));
  ranklab("data info " + at("shards"), 8);
}

class BashCompletion : public testing::Test {
 protected:
  // What bash offers for the last of `words`, cut as bash cuts them.
  std::set<std::string> candidates(const std::string& words) const {
    const fs::path script =
        fs::path(testing::TempDir()) / ("ranklab_completion_" + std::to_string(::getpid()) + ".bash");
    std::ofstream(script) << "source <('" RANKLAB_PROGRAM "' completion bash)\nCOMP_WORDS=(" << words
                          << ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_ranklab\nprintf '%s\\n' "
                             "\"${COMPREPLY[@]}\"\n";
    std::istringstream lines(output_of("bash --norc --noprofile " + script.string()));
    fs::remove(script);
    std::set<std::string> found;
    for (std::string line; std::getline(lines, line);) {
      if (!line.empty()) found.insert(line);
    }
    return found;
  }
};

TEST_F(BashCompletion, OffersSubcommandsAtEachLevel) {
  EXPECT_THAT(candidates("ranklab ''"), Contains("train"));
  EXPECT_THAT(candidates("ranklab ''"), Not(Contains("--help")));
  EXPECT_THAT(candidates("ranklab tr"), ElementsAre("trace", "train"));
  EXPECT_THAT(candidates("ranklab completion ''"), ElementsAre("bash", "fish", "zsh"));
  EXPECT_THAT(candidates("ranklab list p"), ElementsAre("presets"));
}

TEST_F(BashCompletion, OffersOptionsOfTheCommandGiven) {
  EXPECT_THAT(candidates("ranklab train --tensorb"), ElementsAre("--tensorboard-dir"));
  EXPECT_THAT(candidates("ranklab train --no-mock"), ElementsAre("--no-mock-data"));
  EXPECT_THAT(candidates("ranklab trace info --tensorb"), testing::IsEmpty());
  EXPECT_THAT(candidates("ranklab train --tp 2 --collec"), ElementsAre("--collectives"));
}

TEST_F(BashCompletion, OffersValuesAfterASpaceAndAfterAnEqualsSign) {
  EXPECT_THAT(candidates("ranklab train --collectives ''"), ElementsAre("direct", "gloo"));
  EXPECT_THAT(candidates("ranklab train --collectives = gl"), ElementsAre("gloo"));
  EXPECT_THAT(candidates("ranklab train --collectives ="), ElementsAre("direct", "gloo"));
  EXPECT_THAT(candidates("ranklab train --preset gpt2"), ElementsAre("gpt2_124m"));
  EXPECT_THAT(candidates("ranklab train --hardware h100-s"), ElementsAre("h100-sxm"));
}

TEST_F(BashCompletion, OffersLessonsByName) {
  EXPECT_THAT(candidates("ranklab lesson run a"), ElementsAre("all_reduce"));
  EXPECT_THAT(candidates("ranklab lesson check ''"), testing::Contains("split_matmul"));
}

TEST_F(BashCompletion, OffersWhatHasAName) {
  EXPECT_THAT(candidates("ranklab train --inject norm-un"), ElementsAre("norm-unreduced"));
  EXPECT_THAT(candidates("ranklab parity --inject = norm-un"), ElementsAre("norm-unreduced"));
  EXPECT_THAT(candidates("ranklab schedule show zb-v"), ElementsAre("zb-v"));
  EXPECT_THAT(candidates("ranklab schedule import ''"), testing::IsEmpty());
  EXPECT_THAT(candidates("ranklab viz --layout Me"), ElementsAre("Memory"));
  EXPECT_THAT(candidates("ranklab viz --panel c"), ElementsAre("comm", "curves"));
  EXPECT_THAT(candidates("ranklab lesson hunt 7 --axis n"), ElementsAre("none"));
}

TEST_F(BashCompletion, LeavesFilesToTheShell) {
  EXPECT_THAT(candidates("ranklab trace info ''"), testing::IsEmpty());
  EXPECT_THAT(candidates("ranklab train --data-path ''"), testing::IsEmpty());
}

class ShellSyntax : public testing::TestWithParam<const char*> {};

TEST_P(ShellSyntax, TheShellAcceptsTheScript) {
  const std::string shell = GetParam();
  if (std::system(("command -v " + shell + " >/dev/null").c_str()) != 0) GTEST_SKIP() << shell << " is not installed";
  const fs::path script = temporary_path("ranklab_completion_syntax") + "." + shell;
  output_of("'" RANKLAB_PROGRAM "' completion " + shell + " > " + script.string());
  EXPECT_GT(fs::file_size(script), 1000u);
  output_of(shell + " -n " + script.string() + " 2>&1");
  fs::remove(script);
}

INSTANTIATE_TEST_SUITE_P(Shells, ShellSyntax, testing::Values("bash", "zsh", "fish"));

TEST(Completion, ZshAndFishNameTheSameCommandsAndValues) {
  for (const char* shell : {"zsh", "fish"}) {
    const std::string script = output_of(std::string("'" RANKLAB_PROGRAM "' completion ") + shell);
    for (const char* word : {"ranklab trace info", "tensorboard-dir", "gpt2_124m", "h100-sxm", "direct gloo"})
      EXPECT_THAT(script, testing::HasSubstr(word)) << shell;
  }
}

}  // namespace
}  // namespace ranklab
