// Training gives the reference package's tokenizer, whatever the order of the texts.
#include "core/data/tokenizer/bpe_trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/data/tokenizer/tokenizer_file.h"
#include "core/data/tokenizer/tokenizer_styles.h"
#include "tests/data/tokenizer_golden.h"

namespace ranklab {
namespace {

TokenizerSpec train_on(const std::string& style, const std::vector<std::string>& texts, BpeTraining options) {
  TokenizerSpec spec;
  tokenizer_style(style).set(spec);
  BpeTrainer trainer(spec);
  for (const std::string& text : texts) trainer.add(text);
  return trainer.train(options);
}

TEST(BpeTrainers, GiveTheReferencePackagesVocabularyAndMerges) {
  auto corpus = tokenizer_golden().at("corpus").get<std::vector<std::string>>();
  for (const char* style : {"gpt2", "llama3", "qwen2", "deepseek_v3"}) {
    const TokenizerSpec want = read_tokenizer_json(golden_text(std::string(style) + ".json"), style);
    std::reverse(corpus.begin(), corpus.end());
    const TokenizerSpec got =
        train_on(style, corpus, {.vocab_size = 600, .min_frequency = 2, .special = {"<|endoftext|>"}});
    EXPECT_EQ(got.vocab, want.vocab) << style;
    EXPECT_EQ(got.merges, want.merges) << style;
    EXPECT_EQ(got.normal_forms, want.normal_forms) << style;
    EXPECT_EQ(got.pre_tokenizer, want.pre_tokenizer) << style;
    EXPECT_EQ(got.ignore_merges, want.ignore_merges) << style;
    EXPECT_EQ(got.added[0], want.added[0]) << style;
  }
}

// "aaab" and "aab": by hand. aa occurs 2 + 1 times in the words, ab 2 times: aa first, then what is left.
TEST(BpeTrainers, MergesTheMostFrequentPairAndOfEqualsTheFirst) {
  const TokenizerSpec spec = train_on("gpt2", {"aaab", "aab"}, {.vocab_size = 300, .min_frequency = 1});
  std::vector<std::string> made;
  for (size_t id = 256; id < spec.vocab.size(); ++id) made.push_back(spec.vocab[id].first);
  EXPECT_THAT(made, testing::ElementsAre("aa", "ab", "aab", "aaab"));
}

TEST(BpeTrainers, StopWhereNoPairIsFrequentEnough) {
  EXPECT_EQ(train_on("gpt2", {"abc abd"}, {.vocab_size = 300, .min_frequency = 3}).merges.size(), 0u);
  EXPECT_EQ(train_on("gpt2", {"abc", "abd"}, {.vocab_size = 300, .min_frequency = 2}).merges.size(), 1u);
}

TEST(BpeTrainers, NeedRoomForTheBytes) {
  try {
    train_on("gpt2", {"a"}, {.vocab_size = 256, .special = {"<x>"}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("want 257 or more"));
  }
}

}  // namespace
}  // namespace ranklab
