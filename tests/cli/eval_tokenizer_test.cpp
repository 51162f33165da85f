// ranklab eval of a model with a tokenizer: its tokens are those of the shards it was trained on, and pairs of query
// and choice are cut as the LM Evaluation Harness cuts them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/cli/ranklab_program.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;

class EvalTokens : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    fs::create_directories(folder());
    std::string text;
    for (int i = 0; i < 60; ++i)
      text += "The rank " + std::to_string(i * i) + " sends its gradients; they're summed, na\u00efvely.\n";
    write("text.txt", text);
    run("data tokenizer train text.txt --vocab-size 400 -o tok");
    run("data prepare text.txt --tokenizer tok --out shards");
    run("train --gemm mkl --params-dtype fp64 --num-layers 1 --hidden-size 32 --seq-length 32 --gbs 8 --world-size 2 "
        "--tp 2 --vocab-size 408 --data-path shards --train-iters 20 --lr 1e-2 --eval-interval 0 --sample-tokens 0 "
        "--no-trace --log-dir log --save ck");
  }
  static void TearDownTestSuite() { fs::remove_all(folder()); }
  static std::string folder() {
    static const std::string kFolder = temporary_path("eval_tokens");
    return kFolder;
  }
  static void write(const std::string& name, const std::string& text) { std::ofstream(folder() + "/" + name) << text; }
  static std::string in_folder(const std::string& arguments) {
    return "cd '" + folder() + "' && '" RANKLAB_PROGRAM "' " + arguments;
  }
  static void run(const std::string& arguments) {
    const Outcome outcome = run_command(in_folder(arguments + " 2>&1"));
    ASSERT_EQ(outcome.exit_code, 0) << arguments << "\n" << outcome.output;
  }
  static nlohmann::json data(const std::string& arguments) {
    return answer_of(run_command(in_folder("eval --load " + arguments + " --json 2>/dev/null")));
  }
  // The sum over the tokens that are scored of this text.
  static double log_likelihood(const std::string& text) {
    write("one.txt", text);
    const nlohmann::json one = data("ck --text one.txt")["text"];
    return -one["nats_per_token"].get<double>() * one["tokens"].get<double>();
  }
  static nlohmann::json answer(const std::string& task, const std::string& flags) {
    write("task.jsonl", task + "\n");
    return data("ck --tasks task.jsonl " + flags)["tasks"]["answers"][0];
  }
};

TEST_F(EvalTokens, ATextIsScoredByTheTokensOfItsShards) {
  const nlohmann::json text = data("ck --text text.txt"), shards = data("ck --text shards")["text"];
  const double nats = text["text"]["nats_per_token"];
  EXPECT_EQ(text["text"]["tokens"], shards["tokens"]);
  EXPECT_EQ(nats, shards["nats_per_token"].get<double>());
  EXPECT_LT(nats, 4);  // trained on it; ln 408 = 6 is a guess
  EXPECT_EQ(text["text"]["perplexity"].get<double>(), std::exp(nats));
  // All bytes but those of the first token, "The".
  const auto bytes = static_cast<double>(fs::file_size(folder() + "/text.txt") - 3);
  EXPECT_EQ(text["text"]["bytes"], bytes);
  EXPECT_LT(text["text"]["tokens"], bytes / 2);
  EXPECT_DOUBLE_EQ(text["text"]["bits_per_byte"].get<double>(),
                   nats * text["text"]["tokens"].get<double>() / std::log(2.0) / bytes);
  EXPECT_EQ(text["tokenizer"], answer_of(run_command(in_folder("data info shards --json")))["tokenizer"]);
  EXPECT_TRUE(data("ck --text shards")["tokenizer"].is_null());
}

// Its perplexity on other tokens would be a number without a meaning.
TEST_F(EvalTokens, ShardsOfOtherTokensAreRefused) {
  run("data prepare text.txt --out bytes");
  run("data tokenizer train text.txt --vocab-size 300 -o other");
  run("data prepare text.txt --tokenizer other --out of_other");
  run("train --num-layers 1 --hidden-size 32 --seq-length 32 --gbs 1 --world-size 1 --vocab-size 408 --data-path bytes "
      "--train-iters 1 --eval-interval 0 --sample-tokens 0 --no-trace --log-dir byte_log --save byte_ck");
  run("ckpt export-hf ck mine");
  const std::string mine = answer_of(run_command(in_folder("data info shards --json")))["tokenizer"],
                    other = answer_of(run_command(in_folder("data info of_other --json")))["tokenizer"];
  const std::vector<std::array<std::string, 4>> cases = {
      {"ck", "bytes", "bytes", "of the tokenizer with hash " + mine},
      {"mine", "of_other", "of the tokenizer with hash " + other, "of the tokenizer with hash " + mine},
      {"byte_ck", "of_other", "of the tokenizer with hash " + other, "tokens without a tokenizer"}};
  for (const auto& [load, shards, got, want] : cases) {
    const Outcome refused = run_command(in_folder("eval --load " + load + " --text " + shards + " 2>&1"));
    EXPECT_EQ(refused.exit_code, 2) << load << refused.output;
    EXPECT_THAT(refused.output, testing::HasSubstr("the tokens of '" + shards + "' are not those of the model '" +
                                                   load + "'; got " + got + "; want " + want));
  }
  EXPECT_GT(data("mine --text shards")["text"]["tokens"], 0);
  EXPECT_GT(data("byte_ck --text bytes")["text"]["tokens"], 0);
}

TEST_F(EvalTokens, EveryLayoutGivesTheNumbersOfOneRank) {
  write("tasks.jsonl", R"({"query": "The rank 4", "choices": ["sends its gradients", "zqx"], "gold": 0})"
                       "\n"
                       R"({"query": "they're", "choices": ["gradients", "summed"], "gold": 1})"
                       "\n");
  const std::string what = "ck --text text.txt --tasks tasks.jsonl ";
  const nlohmann::json one = data(what);
  for (const std::string layout : {"--tp 2 --dp 2", "--pp 1 --tp 4", "--dp 3"}) {
    const nlohmann::json other = data(what + layout);
    const double nats = one["text"]["nats_per_token"];
    EXPECT_NEAR(other["text"]["nats_per_token"].get<double>(), nats, 1e-12 * nats) << layout;
    for (size_t task = 0; task < 2; ++task)
      for (size_t i = 0; i < 2; ++i) {
        const auto of = [&](const nlohmann::json& all) {
          return all["tasks"]["answers"][task]["log_likelihood"][i].get<double>();
        };
        EXPECT_NEAR(of(other), of(one), 1e-12 * std::abs(of(one))) << layout;
      }
  }
}

// The first token of a text follows what the tokenizer puts before it, so it is scored, too.
TEST_F(EvalTokens, ATokenThatBeginsTheTextIsOnlyContext) {
  nlohmann::json file = nlohmann::json::parse(text_of_file(folder() + "/tok/tokenizer.json"));
  file["post_processor"] = nlohmann::json::parse(R"({"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {"<|endoftext|>": {"id": "<|endoftext|>", "ids": [0], "tokens": ["<|endoftext|>"]}}})");
  write("begins.json", file.dump());
  const std::string text = text_of_file(folder() + "/text.txt");
  write("spelled.txt", "<|endoftext|>" + text);
  const nlohmann::json begun = data("ck --text text.txt --tokenizer begins.json")["text"],
                       spelled = data("ck --text spelled.txt")["text"], plain = data("ck --text text.txt")["text"];
  EXPECT_EQ(begun["tokens"], plain["tokens"].get<int64_t>() + 1);
  EXPECT_EQ(begun["bytes"], text.size());
  EXPECT_EQ(begun["tokens"], spelled["tokens"]);
  EXPECT_EQ(begun["bytes"], spelled["bytes"]);
  EXPECT_EQ(begun["nats_per_token"], spelled["nats_per_token"]);
  // Before a query, too.
  const std::string pair = R"({"query": "The rank", "choices": ["4", "zq"], "gold": 0})";
  const nlohmann::json with = answer(pair, "--tokenizer begins.json"), without = answer(pair, "");
  EXPECT_EQ(with["tokens"], without["tokens"]);
  EXPECT_NEAR(with["log_likelihood"][0].get<double>(),
              log_likelihood("<|endoftext|>The rank 4") - log_likelihood("<|endoftext|>The rank"), 1e-9);
  EXPECT_NE(with["log_likelihood"], without["log_likelihood"]);
}

TEST_F(EvalTokens, SpacesBetweenQueryAndChoiceBelongToTheChoice) {
  const double want = log_likelihood("The rank sends its") - log_likelihood("The rank");
  const std::string choices = R"(", "choices": ["sends its", "zq"], "gold": 0})";
  const nlohmann::json plain = answer(R"({"query": "The rank)" + choices, ""),
                       moved = answer(R"({"query": "The rank )" + choices, "--delimiter ''");
  EXPECT_NEAR(plain["log_likelihood"][0].get<double>(), want, 1e-9);
  EXPECT_EQ(plain["tokens"][0], 2);  // " sends", " its"
  EXPECT_EQ(moved, plain);
}

// "The| r|an" and "The| rank| sends| its": of the whole, the tokens after as many as the query has.
TEST_F(EvalTokens, AChoiceMayMergeWithTheEndOfTheQuery) {
  const auto count = [](const std::string& text) {
    return answer_of(
               run_command(in_folder("data tokenizer encode --tokenizer tok --json --text '" + text + "'")))["count"]
        .get<int64_t>();
  };
  ASSERT_EQ(count("The ran"), 3);
  ASSERT_EQ(count("The rank sends"), 3);
  ASSERT_EQ(count("The rank sends its"), 4);
  const nlohmann::json merged =
      answer(R"({"query": "The ran", "choices": ["k sends its", "zq"], "gold": 0})", "--delimiter ''");
  EXPECT_EQ(merged["tokens"][0], 1);
  EXPECT_NEAR(merged["log_likelihood"][0].get<double>(),
              log_likelihood("The rank sends its") - log_likelihood("The rank sends"), 1e-9);
}

TEST_F(EvalTokens, AHuggingFaceFoldersOwnTokenizerIsTaken) {
  run("ckpt export-hf ck hf --dtype fp32");
  const nlohmann::json saved = data("ck --text text.txt --params-dtype fp32"),
                       exported = data("hf --text text.txt --seq-length 32");
  EXPECT_EQ(exported["tokenizer"], saved["tokenizer"]);
  EXPECT_EQ(exported["text"]["tokens"], saved["text"]["tokens"]);
  EXPECT_NEAR(exported["text"]["nats_per_token"].get<double>(), saved["text"]["nats_per_token"].get<double>(), 1e-5);
  // One that ranklab does not read is not taken for bytes.
  write("hf/tokenizer.json", R"({"model": {"type": "Unigram", "vocab": []}})");
  const Outcome other = run_command(in_folder("eval --load hf --text text.txt 2>&1"));
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.output, testing::AllOf(testing::HasSubstr("needs the model's tokenizer"),
                                           testing::HasSubstr("Unigram"), testing::HasSubstr("--tokenizer DIR")));
}

}  // namespace
}  // namespace ranklab
