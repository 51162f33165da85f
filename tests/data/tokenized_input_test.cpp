// Tokenizing text for token shards: documents, their ends, resuming, and the identity of the tokenizer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "core/data/text_reader.h"
#include "core/data/token_input.h"
#include "core/data/token_shard.h"
#include "core/data/tokenizer/tokenizer.h"
#include "tests/data/tokenizer_golden.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using Tokens = std::vector<uint32_t>;

class TokenizedInputs : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(root_ / name, std::ios::binary) << bytes;
    return (root_ / name).string();
  }
  Tokens read(const std::string& path, const InputFormat& format, size_t at_once = 3, uint64_t skip = 0) {
    const auto input = open_token_input(path, format, &gpt2_);
    if (skip > 0) input->skip(skip);
    Tokens all, some(at_once);
    while (const size_t got = input->read(some))
      all.insert(all.end(), some.begin(), some.begin() + static_cast<long>(got));
    return all;
  }
  std::string refusal(const std::string& path, const InputFormat& format) {
    try {
      read(path, format);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }
  std::string folder() const { return (root_ / "shards").string(); }

  fs::path root_ = fs::path(testing::TempDir()) / ("ranklab_tokenized_" + std::to_string(::getpid()));
  Tokenizer gpt2_{golden_text("gpt2.json"), "gpt2.json"};
};

TEST_F(TokenizedInputs, ADocumentIsItsTokensAndItsEnd) {
  const std::string text = "The ranks agree.\n\nDon't they?", other = "naïve 12";
  Tokens want = gpt2_.encode(text);
  EXPECT_EQ(read(write("a.txt", text), {}), want);
  EXPECT_EQ(read(write("marked.txt", "\xef\xbb\xbf" + text), {}), want) << "a byte order mark is no text";
  want.push_back(0);
  EXPECT_EQ(read(write("a.txt", text), {.end_token = 0}), want);
  const Tokens second = gpt2_.encode(other);
  want.insert(want.end(), second.begin(), second.end());
  want.push_back(0);
  const std::string lines =
      nlohmann::json{{"text", text}}.dump() + "\n\n{\"text\": \"\"}\n" + nlohmann::json{{"text", other}}.dump();
  const std::string file = write("a.jsonl", lines);
  for (const size_t at_once : {1, 2, 7, 1000}) EXPECT_EQ(read(file, {.end_token = 0}, at_once), want);
  EXPECT_EQ(read(file, {.end_token = 0}, 3, 5), Tokens(want.begin() + 5, want.end()));
  EXPECT_EQ(read(write("empty.txt", ""), {.end_token = 0}), Tokens());
}

TEST_F(TokenizedInputs, ATokenThatTheTokenizerPutsBehindATextIsNotPutTwice) {
  nlohmann::json file = nlohmann::json::parse(golden_text("gpt2.json"));
  file["post_processor"] = nlohmann::json::parse(
      R"({"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "e"}}],
          "special_tokens": {"e": {"id": "e", "ids": [0], "tokens": ["<|endoftext|>"]}}})");
  const Tokens bare = gpt2_.encode("end");
  gpt2_ = Tokenizer(file.dump(), "with_end.json");
  Tokens want = bare;
  want.push_back(0);
  EXPECT_EQ(read(write("a.txt", "end"), {}), want);
  EXPECT_EQ(read(write("a.txt", "end"), {.end_token = 0}), want);
}

TEST_F(TokenizedInputs, WhatIsWrongIsNamedWithItsPlace) {
  EXPECT_THAT(refusal(write("a.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b<|endoftext|>c\"}\n"), {.end_token = 0}),
              testing::AllOf(HasSubstr("a.jsonl', line 2"), HasSubstr("the token that ends documents")));
  EXPECT_THAT(refusal(write("b.txt", "one\ntwo<|endoftext|>three\n"), {.end_token = 0}),
              HasSubstr("token 0, '<|endoftext|>', at byte 7, line 2"));
  EXPECT_THAT(refusal(write("a.txt", "ab\xff"), {}), testing::AllOf(HasSubstr("a.txt'"), HasSubstr("0xFF at 2")));
}

TEST_F(TokenizedInputs, ShardsKeepTheTokenizerThatMadeThem) {
  const std::string file = write("a.txt", "The ranks agree. The ranks agree.");
  const PrepareOptions options = {.format = {.end_token = 0}, .tokenizer = &gpt2_};
  prepare_shards({file}, folder(), options);
  const ShardIndex index = read_shard_index(folder());
  EXPECT_EQ(index.format.tokenizer, gpt2_.hash());
  EXPECT_EQ(index.vocab_size, gpt2_.vocab_size());
  EXPECT_EQ(open_shard_tokenizer(folder(), index)->json(), gpt2_.json());
  verify_shards(folder());
  EXPECT_EQ(prepare_shards({file}, folder(), options).resumed_shards, 1u);
  EXPECT_THROW(prepare_shards({file}, folder(), {.format = {.end_token = 0}}), Error) << "bytes, into its folder";
  Tokenizer other(golden_text("qwen2.json"), "qwen2.json");
  EXPECT_THROW(prepare_shards({file}, folder(), {.format = {.end_token = 0}, .tokenizer = &other}), Error);
  std::ofstream(folder() + "/tokenizer.json") << other.json();
  EXPECT_THROW(verify_shards(folder()), Error) << "another tokenizer";
  fs::remove(folder() + "/tokenizer.json");
  EXPECT_THROW(open_shard_tokenizer(folder(), index), Error) << "none";
}

TEST_F(TokenizedInputs, AKilledRunGoesOnWithinADocument) {
  std::string lines;
  for (int i = 0; i < 20; ++i) lines += "{\"text\": \"document number " + std::to_string(i * i) + "\"}\n";
  const std::string file = write("a.jsonl", lines);
  PrepareOptions options = {.shard_tokens = 37, .format = {.end_token = 0}, .tokenizer = &gpt2_};
  options.progress = [](int64_t done, int64_t) {
    if (done == 74) throw std::runtime_error("cut off");
  };
  EXPECT_THROW(prepare_shards({file}, folder(), options), std::runtime_error);
  options.progress = {};
  EXPECT_EQ(prepare_shards({file}, folder(), options).resumed_shards, 2u);
  const auto shards = open_shards(folder());
  std::vector<int64_t> all(static_cast<size_t>(shards->size()));
  shards->read(0, all);
  EXPECT_EQ(Tokens(all.begin(), all.end()), read(file, options.format));
}

TEST_F(TokenizedInputs, TrainingReadsLinesWithTheirEndsAndDocumentsOfJson) {
  std::vector<std::string> texts;
  const auto take = [&](const std::string& text) { texts.push_back(text); };
  EXPECT_EQ(each_training_text(write("a.txt", "one\r\n\ntwo"), "text", take), 9u);
  EXPECT_THAT(texts, ElementsAre("one\r\n", "\n", "two"));
  texts.clear();
  EXPECT_EQ(each_training_text(write("marked.txt", "\xef\xbb\xbfone\n\xef\xbb\xbftwo"), "text", take), 10u);
  EXPECT_THAT(texts, ElementsAre("one\n", "\xef\xbb\xbftwo"));
  texts.clear();
  each_training_text(write("a.jsonl", "{\"body\": \"a\\nb\"}\n"), "body", take);
  EXPECT_THAT(texts, ElementsAre("a\nb"));
}

}  // namespace
}  // namespace ranklab
