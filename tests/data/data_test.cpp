#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "core/base/error.h"
#include "core/base/numbers/philox.h"
#include "core/data/batch_source.h"
#include "core/data/corpus.h"
#include "core/data/token_dataset.h"

namespace ranklab {
namespace {

std::string numbered_text(int64_t samples, int64_t length) {  // sample i starts with byte i
  std::string text;
  for (int64_t i = 0; i < samples; ++i) {
    for (int64_t j = 0; j < length; ++j) text += static_cast<char>(i + j);
  }
  return text + static_cast<char>(samples);
}

int64_t first_token(const TokenBatch& batch, int64_t row) { return batch.tokens_BS[row][0].item<int64_t>(); }

TEST(ByteTokenizer, RoundTripsEveryByte) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  EXPECT_EQ(ByteTokenizer::decode(ByteTokenizer::encode(all)), all);
  EXPECT_EQ(ByteTokenizer::encode("\xff")[0], 255);
  const std::vector<int64_t> bad = {256};
  EXPECT_THROW(ByteTokenizer::decode(bad), Error);
}

TEST(TokenDataset, TargetsAreTheNextTokensAndSplitsDoNotOverlap) {
  const TokenDataset data(numbered_text(20, 4), 4, 0.25);
  EXPECT_EQ(data.samples(Split::kTrain), 15);
  EXPECT_EQ(data.samples(Split::kValidation), 5);
  std::vector<int64_t> tokens(4), targets(4);
  data.read(Split::kTrain, 14, tokens, targets);
  EXPECT_EQ(tokens, (std::vector<int64_t>{14, 15, 16, 17}));
  EXPECT_EQ(targets, (std::vector<int64_t>{15, 16, 17, 15}));
  data.read(Split::kValidation, 0, tokens, targets);
  EXPECT_EQ(tokens[0], 15);
}

TEST(TokenDataset, RefusesATextShorterThanOneSample) {
  try {
    TokenDataset data("short", 128, 0.1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find("5 tokens"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("257"), std::string::npos) << error.what();
  }
}

TEST(BatchSource, EveryLayoutSeesTheSameGlobalBatch) {
  const auto data = std::make_shared<TokenDataset>(numbered_text(100, 8), 8, 0.0);
  const BatchSource one(data, {.micro_batch_size = 16, .num_microbatches = 1, .dp_size = 1}, 5);
  for (const auto& [micro, count, dp] :
       {std::tuple{2, 1, 8}, std::tuple{2, 2, 4}, std::tuple{1, 8, 2}, std::tuple{4, 4, 1}}) {
    const BatchSource split(data, {.micro_batch_size = micro, .num_microbatches = count, .dp_size = dp}, 5);
    for (const int64_t step : {0, 3, 7}) {  // step 7 crosses into the second epoch (7 * 16 > 100)
      const TokenBatch whole = one.train(step, 0, 0);
      for (int d = 0; d < dp; ++d) {
        for (int64_t i = 0; i < count; ++i) {
          const TokenBatch part = split.train(step, i, d);
          EXPECT_TRUE(part.tokens_BS.equal(whole.tokens_BS.narrow(0, part.first_sample, micro)));
          EXPECT_TRUE(part.targets_BS.equal(whole.targets_BS.narrow(0, part.first_sample, micro)));
        }
      }
    }
  }
}

TEST(BatchSource, AnEpochShowsEverySampleOnceInANewOrder) {
  const auto data = std::make_shared<TokenDataset>(numbered_text(64, 8), 8, 0.0);
  const BatchSource source(data, {.micro_batch_size = 8, .num_microbatches = 1, .dp_size = 1}, 5);
  std::vector<std::vector<int64_t>> order(2);
  for (int64_t step = 0; step < 16; ++step) {
    const TokenBatch batch = source.train(step, 0, 0);
    for (int64_t j = 0; j < 8; ++j) order[static_cast<size_t>(step / 8)].push_back(first_token(batch, j));
  }
  for (const auto& epoch : order) EXPECT_EQ(std::set<int64_t>(epoch.begin(), epoch.end()).size(), 64u);
  EXPECT_NE(order[0], order[1]);
  EXPECT_EQ(source.epochs(8), std::vector<double>{1.0});
}

TEST(BatchSource, AStepIsAPureFunctionOfTheSeed) {
  const auto data = std::make_shared<TokenDataset>(numbered_text(100, 8), 8, 0.1);
  const BatchShape shape{.micro_batch_size = 4, .num_microbatches = 2, .dp_size = 2};
  const BatchSource a(data, shape, 5), b(data, shape, 5), c(data, shape, 6);
  EXPECT_TRUE(a.train(9, 1, 1).tokens_BS.equal(b.train(9, 1, 1).tokens_BS));
  EXPECT_FALSE(a.train(9, 1, 1).tokens_BS.equal(c.train(9, 1, 1).tokens_BS));
  EXPECT_TRUE(a.validation(2, 1, 1).tokens_BS.equal(c.validation(2, 1, 1).tokens_BS));
}

TEST(Corpus, ReadsAFileAndRefusesWhatIsNotOne) {
  const std::string path = testing::TempDir() + "/ranklab_corpus_test.txt";
  std::ofstream(path) << "hello world";
  EXPECT_EQ(load_corpus(path).text, "hello world");
  EXPECT_EQ(load_corpus(path).source, path);
  EXPECT_EQ(measure_corpus(path, "--data-path"), 11);
  std::ofstream(path) << "\xef\xbb\xbfhello world";
  EXPECT_EQ(load_corpus(path).text, "hello world") << "without the byte order mark";
  EXPECT_EQ(measure_corpus(path, "--data-path"), 11);
  std::ofstream(path) << "\xef\xbb\xbf";
  EXPECT_THROW(load_corpus(path), Error);
  EXPECT_THROW(measure_corpus(path, "--data-path"), Error);
  std::ofstream(path).close();
  EXPECT_THROW(load_corpus(path), Error);
  EXPECT_THROW(load_corpus(path + ".missing"), Error);
  EXPECT_THROW(load_corpus(testing::TempDir()), Error);
}

// For a user without a home: in a folder that every user may write to, somebody else's files could be read.
TEST(Corpus, IsNotKeptWhereOthersMayWrite) {
  const auto value = [](const char* name) {
    return std::string(std::getenv(name) != nullptr ? std::getenv(name) : "");
  };
  const std::string home = value("HOME"), cache = value("XDG_CACHE_HOME");
  ::unsetenv("XDG_CACHE_HOME");
  ::unsetenv("HOME");
  EXPECT_EQ(user_cache_directory(), "");
  ::setenv("HOME", "", 1);
  EXPECT_EQ(user_cache_directory(), "");
  ::setenv("HOME", home.c_str(), 1);
  if (!cache.empty()) ::setenv("XDG_CACHE_HOME", cache.c_str(), 1);
}

TEST(Corpus, GeneratedSentencesAreTheSameEverywhere) {
  const std::string text = generate_sentences(1, 4096);
  EXPECT_EQ(text.size(), 4096u);
  EXPECT_EQ(text, generate_sentences(1, 4096));
  EXPECT_NE(text, generate_sentences(2, 4096));
  EXPECT_EQ(hash_bytes(text.data(), text.size()), 9066374389607309843u);
}

}  // namespace
}  // namespace ranklab
