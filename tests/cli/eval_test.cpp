// ranklab eval as a user runs it: the same numbers in every layout, those of validation, and of a Hugging Face folder.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tests/cli/ranklab_program.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr const char* kModel =
    "--num-layers 2 --hidden-size 32 --ffn-hidden-size 48 --num-attention-heads 4 --seq-length 32 "
    "--params-dtype fp64 ";

class Eval : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    fs::create_directories(folder());
    std::string text;
    for (int i = 0; i < 40; ++i) text += "And the " + std::to_string(i * 37 % 101) + " said unto them, go.\n";
    std::ofstream(folder() + "/text.txt") << text;
    std::ofstream(folder() + "/tasks.jsonl")
        << R"({"query": "And the 5 said", "choices": ["unto them", "zzqqx", "go"], "gold": 0})"
           "\n\n"
        << R"({"question": "said unto", "choices": ["qqq", "them, go."], "answer": "B"})"
           "\n"
        << R"({"query": "And", "choices": ["the", "xq"], "gold": "the"})"
           "\n";
    const Outcome trained =
        run_command("cd '" + folder() + "' && '" RANKLAB_PROGRAM "' train --data-path text.txt " + kModel +
                    "--world-size 2 --tp 2 --gbs 4 --train-iters 30 --lr 1e-2 --sample-tokens 0 "
                    "--eval-interval 0 --no-trace --save ck --log-dir run 2>&1");
    ASSERT_EQ(trained.exit_code, 0) << trained.output;
  }
  static std::string folder() {
    static const std::string kFolder = temporary_path("eval_cli");
    return kFolder;
  }
  static Outcome eval(const std::string& arguments) {
    return run_command("cd '" + folder() + "' && '" RANKLAB_PROGRAM "' eval " + arguments);
  }
  static nlohmann::json data(const std::string& arguments) {
    return answer_of(eval(arguments + " --json 2>/dev/null"));
  }
};

TEST_F(Eval, EveryLayoutGivesTheNumbersOfOneRank) {
  const std::string what = "--load ck --text text.txt --tasks tasks.jsonl ";
  const nlohmann::json one = data(what);
  const auto size = static_cast<int64_t>(fs::file_size(folder() + "/text.txt"));
  EXPECT_EQ(one["text"]["tokens"], size - 1);
  EXPECT_EQ(one["text"]["windows"], (size - 1 + 31) / 32);
  EXPECT_EQ(one["text"]["stride"], 32);
  const double nats = one["text"]["nats_per_token"];
  EXPECT_DOUBLE_EQ(one["text"]["perplexity"].get<double>(), std::exp(nats));
  EXPECT_DOUBLE_EQ(one["text"]["bits_per_byte"].get<double>(), nats / std::log(2.0));
  EXPECT_LT(nats, 3);  // trained on it; 5.5 is a guess
  for (const std::string layout : {"--tp 4", "--pp 2 --dp 2", "--cp 2 --tp 2", "--dp 3", "--dp 2 --mbs 4 --gbs 8"}) {
    const nlohmann::json other = data(what + layout);
    EXPECT_NEAR(other["text"]["nats_per_token"].get<double>(), nats, 1e-12 * nats) << layout;
    EXPECT_EQ(other["tasks"]["acc"], one["tasks"]["acc"]) << layout;
    for (size_t task = 0; task < 3; ++task) {
      const auto &mine = one["tasks"]["answers"][task]["log_likelihood"],
                 &theirs = other["tasks"]["answers"][task]["log_likelihood"];
      ASSERT_EQ(theirs.size(), mine.size());
      for (size_t i = 0; i < mine.size(); ++i)
        EXPECT_NEAR(theirs[i].get<double>(), mine[i].get<double>(), 1e-12 * std::abs(mine[i].get<double>())) << layout;
    }
  }
}

// Otherwise it would silently be another model, or be taken for a damaged checkpoint.
TEST_F(Eval, FlagsOfAnotherModelAreRefused) {
  const auto refused = [](const std::string& flags, const std::string& got, const std::string& want) {
    for (const std::string command : {"eval --text text.txt", "generate --tokens 2"}) {
      const Outcome out =
          run_command("cd '" + folder() + "' && '" RANKLAB_PROGRAM "' " + command + " --load ck " + flags + " 2>&1");
      EXPECT_EQ(out.exit_code, 2) << command << flags << out.output;
      EXPECT_THAT(out.output, HasSubstr("'ck': the checkpoint is from a different model; got " + got + "; want " +
                                        want + ", as saved"));
    }
  };
  refused("--num-layers 1", "--num-layers 1", "--num-layers 2");
  refused("--num-layers 3", "--num-layers 3", "--num-layers 2");
  refused("--vocab-size 400 --set model.norm_epsilon=0.5", "--norm-epsilon 0.5, --vocab-size 400",
          "--norm-epsilon 1e-05, --vocab-size 256");
  refused("--rotary-base 5", "--rotary-base 5", "--rotary-base 10000");
  refused("--preset llama_1b", "--preset llama_1b", "--preset gpt_tiny");
  const nlohmann::json plain = data("--load ck --text text.txt");
  for (const char* same : {"--preset gpt_tiny --num-layers 2", "--hidden-dropout 0.1", "--mtp-loss-scaling-factor 0.5"})
    EXPECT_EQ(data("--load ck --text text.txt " + std::string(same))["text"], plain["text"]) << same;
  // Rotary positions may be stretched for longer texts.
  for (const char* longer : {"--seq-length 64", "--rope-scaling-type linear --rope-scaling-factor 2"})
    EXPECT_NE(data("--load ck --text text.txt " + std::string(longer))["text"]["nats_per_token"],
              plain["text"]["nats_per_token"]);
}

// The first tokens of documents are not scored, in the windows of a text.
TEST_F(Eval, WhatFollowsTheEndOfADocumentIsLeftOutWhereTrainingLeavesItOut) {
  const nlohmann::json all = data("--load ck --text text.txt"),
                       some = data("--load ck --text text.txt --eod-mask-loss --eod-token 10");
  EXPECT_EQ(some["text"]["tokens"], all["text"]["tokens"].get<int64_t>() - 39);  // 40 lines end in byte 10
  EXPECT_EQ(some["text"]["windows"], all["text"]["windows"]);
  EXPECT_TRUE(some["text"]["bytes"].is_null());
  EXPECT_NE(some["text"]["nats_per_token"], all["text"]["nats_per_token"]);
  std::ofstream(folder() + "/ends.txt") << std::string(9, 'e');
  const Outcome nothing = eval("--load ck --text ends.txt --eod-mask-loss --eod-token 101 2>&1");
  EXPECT_EQ(nothing.exit_code, 8) << nothing.output;
  EXPECT_THAT(nothing.output, HasSubstr("only tokens after 101, which ends documents"));
}

// A model that a file, the environment or --set names is loaded as the flag's is, not only printed.
TEST_F(Eval, EverySourceNamesTheModel) {
  std::ofstream(folder() + "/run.toml")
      << "[checkpoint]\nsave = \"ck\"\nload = \"auto\"\n[train]\nparams_dtype = \"fp64\"\n";
  const std::string text = " --text text.txt";
  const double nats = data("--load ck" + text)["text"]["nats_per_token"];
  for (const std::string& other :
       {"--set checkpoint.load=ck" + text, "-c run.toml" + text, "--load auto --save ck" + text})
    EXPECT_EQ(data(other)["text"]["nats_per_token"], nats) << other;
  ::setenv("RANKLAB_CHECKPOINT_LOAD", "ck", 1);
  EXPECT_EQ(data(text)["text"]["nats_per_token"], nats);
  const auto said = [&](const std::string& from) {
    const std::string out = run_command("cd '" + folder() + "' && '" RANKLAB_PROGRAM "' generate --tokens 20 " + from +
                                        " --temperature 0 2>&1")
                                .output;
    return out.substr(0, out.find('\n'));
  };
  const std::string of_environment = said("");
  ::unsetenv("RANKLAB_CHECKPOINT_LOAD");
  EXPECT_EQ(of_environment, said("--load ck"));
  EXPECT_NE(of_environment, said("--params-dtype fp64"));
  EXPECT_THAT(eval("--load auto" + text + " 2>&1").output, HasSubstr("--load auto has no effect without --save"));
}

TEST_F(Eval, ChoicesAreLikelyOrNot) {
  const nlohmann::json tasks = data("--load ck --tasks tasks.jsonl")["tasks"];
  EXPECT_EQ(tasks["tasks"], 3);
  EXPECT_EQ(tasks["answers"][1]["gold"], 1);  // "B"
  EXPECT_EQ(tasks["answers"][2]["gold"], 0);  // "the"
  // By byte of its text the phrase of the training text beats the rest; "go" is shorter, so likelier in sum.
  EXPECT_EQ(tasks["acc_norm"], 1.0);
  EXPECT_EQ(tasks["answers"][0]["chosen_by_byte"], 0);
  // A choice's likelihood is that of its bytes after the query and a space: with two texts' perplexities the same.
  std::ofstream(folder() + "/whole.txt") << "And the";
  std::ofstream(folder() + "/begin.txt") << "And";
  const nlohmann::json whole = data("--load ck --text whole.txt")["text"],
                       begin = data("--load ck --text begin.txt")["text"];
  const double difference = begin["nats_per_token"].get<double>() * 2 - whole["nats_per_token"].get<double>() * 6;
  std::ofstream(folder() + "/plain.jsonl") << R"({"query": "And", "choices": [" the", "x"], "gold": 0})";
  const nlohmann::json joined = data("--load ck --tasks plain.jsonl --delimiter ''")["tasks"];
  EXPECT_NEAR(joined["answers"][0]["log_likelihood"][0].get<double>(), difference, 1e-9);
  std::ofstream(folder() + "/marked.txt") << "\xef\xbb\xbf"
                                             "And the";
  nlohmann::json marked = data("--load ck --text marked.txt")["text"];
  EXPECT_EQ(marked["nats_per_token"], whole["nats_per_token"]) << "a byte order mark is no text";
  EXPECT_THAT(eval("--load ck --tasks plain.jsonl").output, HasSubstr("\nplain.jsonl: 1 task\n"));
}

TEST_F(Eval, AShorterStrideScoresTheSameTokensInMoreWindows) {
  const nlohmann::json apart = data("--load ck --text text.txt")["text"],
                       close = data("--load ck --text text.txt --stride 8")["text"];
  const int64_t tokens = apart["tokens"];
  EXPECT_EQ(close["tokens"], tokens);
  EXPECT_EQ(close["windows"], 1 + (tokens - 32 + 7) / 8);  // the first scores 32 tokens, each other one 8
  EXPECT_NE(close["nats_per_token"], apart["nats_per_token"]);
}

TEST_F(Eval, AHuggingFaceFolderIsEvaluatedAsItIs) {
  ASSERT_EQ(
      run_command("cd '" + folder() + "' && '" RANKLAB_PROGRAM "' ckpt export-hf ck hf --dtype fp32 2>&1").exit_code,
      0);
  const nlohmann::json saved = data("--load ck --text text.txt --params-dtype fp32")["text"];
  for (const std::string layout : {"", "--tp 2 --pp 2"}) {
    const nlohmann::json folder = data("--load hf --text text.txt --seq-length 32 " + layout)["text"];
    EXPECT_NEAR(folder["nats_per_token"].get<double>(), saved["nats_per_token"].get<double>(), 1e-5) << layout;
  }
  const Outcome other = eval("--load hf --text text.txt --num-layers 1 --preset llama_1b 2>&1");
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.output, HasSubstr("got --preset llama_1b, --num-layers 1; want no --preset, --num-layers 2"));
  // Text from it, too.
  EXPECT_EQ(run_command("cd '" + folder() + "' && '" RANKLAB_PROGRAM "' generate --gemm mkl --load hf --tokens 3 2>&1")
                .exit_code,
            0);
}

// The same tokens from shards give the same numbers; also for models whose tokens are not bytes.
TEST_F(Eval, AFolderOfShardsIsEvaluatedByItsTokens) {
  ASSERT_EQ(
      run_command("cd '" + folder() + "' && '" RANKLAB_PROGRAM "' data prepare text.txt --out shards 2>&1").exit_code,
      0);
  const nlohmann::json bytes = data("--load ck --text text.txt")["text"],
                       shards = data("--load ck --text shards")["text"];
  EXPECT_EQ(shards["nats_per_token"], bytes["nats_per_token"]);
  EXPECT_EQ(shards["tokens"], bytes["tokens"]);
  EXPECT_TRUE(shards["bits_per_byte"].is_null());
  const nlohmann::json larger =
      data("--num-layers 1 --hidden-size 32 --vocab-size 300 --seq-length 32 --text shards --dp 2")["text"];
  EXPECT_NEAR(larger["nats_per_token"].get<double>(), std::log(300.0), 0.2);  // untrained: any of them
}

TEST_F(Eval, TextSaysWhatWasDone) {
  const Outcome out = eval("--load ck --text text.txt --tasks tasks.jsonl --tp 2");
  EXPECT_EQ(out.exit_code, 0);
  EXPECT_TRUE(data("--load ck --text text.txt")["preset"].is_null()) << "a saved model may have been none";
  for (const char* part : {" parameters, weights of ck, dp 1 x tp 2", "windows of 32, stride 32", "nats per token",
                           "perplexity", "bits per byte", "3 tasks", "acc_norm", "1.0000 +- 0.0000"})
    EXPECT_THAT(out.output, HasSubstr(part));
}

}  // namespace
}  // namespace ranklab
