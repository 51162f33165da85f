// The ids of the reference package, and what encoding and decoding promise beyond it.
#include "core/data/tokenizer/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/checkpoint/hf/tokenizer.h"
#include "core/data/tokenizer/tokenizer_file.h"
#include "core/data/tokenizer/tokenizer_spec.h"
#include "tests/data/tokenizer_golden.h"

namespace ranklab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Ids = std::vector<uint32_t>;

Tokenizer golden_tokenizer(const std::string& style) { return {golden_text(style + ".json"), style + ".json"}; }

TEST(TokenizerGolden, IdsAreThoseOfTheReferencePackage) {
  const auto cases = tokenizer_golden().at("cases").get<std::vector<std::string>>();
  size_t compared = 0;
  for (const auto& [style, ids] : tokenizer_golden().at("ids").items()) {
    Tokenizer tokenizer = golden_tokenizer(style);
    for (size_t i = 0; i < cases.size(); ++i, ++compared)
      EXPECT_EQ(tokenizer.encode(cases[i]), ids.at(i).get<Ids>()) << style << ": " << cases[i];
  }
  EXPECT_GT(compared, 500u);
}

TEST(TokenizerGolden, OneTextAfterAnotherIsTheSameAsEachAlone) {
  const auto cases = tokenizer_golden().at("cases").get<std::vector<std::string>>();
  Tokenizer again = golden_tokenizer("gpt2");
  for (int round = 0; round < 2; ++round)  // the second time from the words that are known
    for (size_t i = 0; i < cases.size(); i += 7)
      EXPECT_EQ(again.encode(cases[i]), golden_tokenizer("gpt2").encode(cases[i])) << cases[i];
}

// The decoder ByteLevel does not distinguish them: characters of its alphabet represent bytes.
TEST(Tokenizers, TextOfAnAddedTokenIsWhatItSpells) {
  nlohmann::json file = nlohmann::json::parse(hf_byte_tokenizer());
  int id = 256;
  for (const char* content : {"\u0120x", "x y", "<|end|>"})
    file["added_tokens"].push_back({{"id", id++},
                                    {"content", content},
                                    {"single_word", false},
                                    {"lstrip", false},
                                    {"rstrip", false},
                                    {"normalized", false},
                                    {"special", false}});
  const Tokenizer tokenizer(file.dump(), "tokenizer.json");
  EXPECT_EQ(tokenizer.decode(std::vector<int64_t>{256, 257, 258}), " xx y<|end|>");
}

TEST(Tokenizers, TextOfItsTokensIsTheText) {
  for (const char* style : {"gpt2", "llama3", "deepseek_v3"}) {  // qwen2 and odd normalize
    Tokenizer tokenizer = golden_tokenizer(style);
    for (const std::string text : {"plain", "É́ ｶﾞ \r\n\t 👩‍💻 ١٢٣", "a\0b", "   spaces   "}) {
      const Ids ids = tokenizer.encode(text, false);
      EXPECT_EQ(tokenizer.decode(std::vector<int64_t>(ids.begin(), ids.end())), text) << style;
    }
  }
}

TEST(Tokenizers, SpecialTokensStandAroundATextAndCanBeLeftOut) {
  Tokenizer tokenizer = golden_tokenizer("llama3");
  const Ids whole = tokenizer.encode("a"), bare = tokenizer.encode("a", false);
  ASSERT_EQ(whole.size(), bare.size() + 1);
  EXPECT_EQ(Ids(whole.begin() + 1, whole.end()), bare);
  const std::vector<int64_t> ids(whole.begin(), whole.end());
  EXPECT_EQ(tokenizer.decode(ids), "<|begin_of_text|>a");
  EXPECT_EQ(tokenizer.decode(ids, true), "a");
  EXPECT_EQ(tokenizer.end_token(), 0u);  // <|endoftext|>, the first that training knew
}

TEST(Tokenizers, TheByteTokenizerOfExportsGivesBytes) {
  Tokenizer tokenizer(hf_byte_tokenizer(), "tokenizer.json");
  EXPECT_THAT(tokenizer.encode("aé\n"), ElementsAre(97, 0xC3, 0xA9, 10));
  EXPECT_EQ(tokenizer.vocab_size(), 256);
  EXPECT_EQ(tokenizer.end_token(), std::nullopt);
}

TEST(Tokenizers, AFolderOfVocabularyAndMergesIsTheSameAsItsJson) {
  const std::string folder = testing::TempDir() + "/ranklab_vocab_merges_" + std::to_string(::getpid());
  std::filesystem::create_directories(folder);
  const nlohmann::json model = nlohmann::json::parse(golden_text("gpt2.json")).at("model");
  std::ofstream(folder + "/vocab.json") << model.at("vocab").dump();
  std::ofstream merges(folder + "/merges.txt");
  merges << "#version: 0.2\n";
  for (const auto& merge : model.at("merges"))
    merges << merge.at(0).get<std::string>() << ' ' << merge.at(1).get<std::string>() << '\n';
  merges.close();
  Tokenizer pair = open_tokenizer(folder), json = golden_tokenizer("gpt2");
  const std::string text = "The ranks agree, don't they?\n\n<|endoftext|>naïve";
  EXPECT_EQ(pair.encode(text), json.encode(text));
  EXPECT_EQ(pair.end_token(), 0u);
  // Qwen's class has other patterns and a normal form, and says its added tokens in tokenizer_config.json.
  std::ofstream(folder + "/tokenizer_config.json")
      << R"({"tokenizer_class": "Qwen2Tokenizer", "eos_token": "<|im_end|>", "added_tokens_decoder": {
             "600": {"content": "<|im_end|>", "special": true}}})";
  Tokenizer qwen = open_tokenizer(folder);
  EXPECT_EQ(qwen.end_token(), 600u);
  EXPECT_EQ(qwen.encode("12<|im_end|>").size(), 3u);
  EXPECT_EQ(qwen.encode("e\u0301"), qwen.encode("\u00e9"));
  std::filesystem::remove_all(folder);
}

TEST(Tokenizers, AreWrittenAsTheyAreRead) {
  for (const char* style : {"gpt2", "llama3", "qwen2", "deepseek_v3", "odd"}) {
    const TokenizerSpec spec = read_tokenizer_json(golden_text(std::string(style) + ".json"), style);
    EXPECT_EQ(read_tokenizer_json(tokenizer_json(spec), style), spec) << style;
  }
}

TEST(Tokenizers, RefuseTextThatIsNoUtf8AndNumbersOfNoToken) {
  Tokenizer tokenizer = golden_tokenizer("gpt2");
  try {
    tokenizer.encode("abc\xff");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("byte 0xFF at 3"));
  }
  for (const int64_t id : {int64_t{-1}, tokenizer.vocab_size()})
    EXPECT_THROW(tokenizer.decode(std::vector<int64_t>{id}), Error) << id;
}

// A word of a million bytes takes a moment if its merges are found by a heap, and hours if each is looked for.
TEST(Tokenizers, AWordOfAMillionBytesIsAWord) {
  Tokenizer tokenizer = golden_tokenizer("gpt2");
  std::string word;
  for (int i = 0; i < 250'000; ++i) word += "then";
  const Ids ids = tokenizer.encode(word);
  EXPECT_EQ(tokenizer.decode(std::vector<int64_t>(ids.begin(), ids.end())), word);
  EXPECT_LT(ids.size(), word.size());
}

}  // namespace
}  // namespace ranklab
