#include "core/data/token_shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "core/base/files/folder_lock.h"
#include "core/data/corpus.h"
#include "core/data/shard_format.h"
#include "core/data/token_dataset.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class TokenShards : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) / ("ranklab_shards_" + std::to_string(::getpid()));
    fs::remove_all(root_);
    fs::create_directories(root_);
    text_ = generate_sentences(3, 1000) + "\xff\x80 bytes above 127";
    write("a.txt", text_.substr(0, 333));
    write("b.txt", text_.substr(333));
    files_ = {path("a.txt"), path("b.txt")};
  }
  void TearDown() override { fs::remove_all(root_); }
  std::string path(const std::string& name) const { return (root_ / name).string(); }
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
  }
  std::string folder() const { return path("shards"); }
  std::string shard(int i) const { return folder() + "/shard_0000" + std::to_string(i) + ".bin"; }

  template <typename Call>
  void expect_bad_file(const Call& call, const std::string& file, const std::string& what) const {
    try {
      call();
      ADD_FAILURE() << "accepted: " << what;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kBadFile) << error.what();
      EXPECT_THAT(error.what(), HasSubstr(file));
      EXPECT_THAT(error.what(), HasSubstr(what));
    }
  }
  // What a run does: opens them and reads every token.
  static void train_on(const std::string& folder) {
    const auto tokens = open_shards(folder);
    std::vector<int64_t> all(static_cast<size_t>(tokens->size()));
    tokens->read(0, all);
  }
  void flip_byte(const std::string& file, int64_t at) const { flip_bit(file, at, 0); }
  void flip_bit(const std::string& file, int64_t at, int bit) const {
    std::fstream f(file, std::ios::in | std::ios::out | std::ios::binary);
    f.seekg(at);
    const char c = static_cast<char>(f.get() ^ (1 << bit));
    f.seekp(at);
    f.put(c);
  }
  fs::path root_;
  std::string text_;
  std::vector<std::string> files_;
};

TEST_F(TokenShards, GiveTheSamplesOfTheTextWhateverTheShardSize) {
  const TokenDataset want(text_, 16, 0.1);
  for (const auto width : {TokenWidth::kUint16, TokenWidth::kUint32}) {
    for (const int64_t shard_tokens : {7, 100, 100000}) {
      fs::remove_all(folder());
      prepare_shards(files_, folder(), {.width = width, .shard_tokens = shard_tokens});
      verify_shards(folder());
      const TokenDataset got(open_shards(folder()), 16, 0.1);
      for (const Split split : {Split::kTrain, Split::kValidation}) {
        ASSERT_EQ(got.samples(split), want.samples(split));
        std::vector<int64_t> a(16), b(16), c(16), d(16);
        for (int64_t i = 0; i < want.samples(split); ++i) {
          want.read(split, i, a, b);
          got.read(split, i, c, d);
          ASSERT_EQ(a, c);
          ASSERT_EQ(b, d);
        }
      }
    }
  }
}

TEST_F(TokenShards, AnUnfinishedRunIsContinuedAndTheFilesAreTheSame) {
  PrepareOptions options{.shard_tokens = 100};
  options.progress = [](int64_t done, int64_t) {
    if (done == 300) throw std::runtime_error("cut off");
  };
  EXPECT_THROW(prepare_shards(files_, folder(), options), std::runtime_error);
  expect_bad_file([&] { open_shards(folder()); }, "index.json", "not finished");
  const auto first = fs::last_write_time(shard(0));
  const PrepareResult again = prepare_shards(files_, folder(), {.shard_tokens = 100});
  EXPECT_EQ(again.resumed_shards, 3u);
  EXPECT_EQ(again.index.shards.size(), 11u);
  EXPECT_EQ(fs::last_write_time(shard(0)), first) << "complete shards are kept";
  std::vector<int64_t> tokens(text_.size());
  open_shards(folder())->read(0, tokens);
  EXPECT_EQ(tokens, ByteTokenizer::encode(text_));
  EXPECT_EQ(prepare_shards(files_, folder(), {.shard_tokens = 100}).resumed_shards, 11u);
}

TEST_F(TokenShards, AnInputsNameMayBeNoUtf8) {
  write("caf\xe9.txt", text_);
  const std::vector<std::string> file = {(root_ / "caf\xe9.txt").string()};
  prepare_shards(file, folder(), {.shard_tokens = 400});
  EXPECT_THAT(read_shard_index(folder()).inputs[0].path, HasSubstr("caf\\xe9.txt"));
  EXPECT_EQ(prepare_shards(file, folder(), {.shard_tokens = 400}).resumed_shards, 3u) << "the same input again";
}

TEST_F(TokenShards, OtherInputsAreRefused) {
  prepare_shards(files_, folder(), {.shard_tokens = 100});
  std::string changed = text_.substr(333);
  changed[5] ^= 1;
  write("b.txt", changed);  // same path and size, another hash
  try {
    prepare_shards(files_, folder(), {.shard_tokens = 100});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("other inputs"));
  }
}

TEST_F(TokenShards, DamageIsFoundAndTheFileNamed) {
  prepare_shards(files_, folder(), {.shard_tokens = 100});
  fs::resize_file(shard(1), fs::file_size(shard(1)) - 1);
  expect_bad_file([&] { open_shards(folder()); }, shard(1), "272 bytes");
  fs::resize_file(shard(1), 10);
  expect_bad_file([&] { open_shards(folder()); }, shard(1), "cut off");
  fs::remove_all(folder());
  prepare_shards(files_, folder(), {.shard_tokens = 100});
  flip_byte(shard(0), 0);
  expect_bad_file([&] { open_shards(folder()); }, shard(0), "not a token shard");
  flip_byte(shard(0), 0);
  flip_byte(shard(2), 64 + 20);
  expect_bad_file([&] { verify_shards(folder()); }, shard(2), "damaged");
  const auto tokens = open_shards(folder());
  std::vector<int64_t> all(text_.size());
  expect_bad_file([&] { tokens->read(0, all); }, shard(2), "damaged");
}

TEST_F(TokenShards, WhatIsDamagedOrMissingIsWrittenAgain) {
  prepare_shards(files_, folder(), {.shard_tokens = 100});
  const auto first = fs::last_write_time(shard(0));
  const auto is_mended = [&](size_t sound) {
    EXPECT_EQ(prepare_shards(files_, folder(), {.shard_tokens = 100}).resumed_shards, sound);
    verify_shards(folder());
    std::vector<int64_t> tokens(text_.size());
    open_shards(folder())->read(0, tokens);
    EXPECT_EQ(tokens, ByteTokenizer::encode(text_));
  };
  flip_byte(shard(2), 64 + 20);
  is_mended(2);
  flip_byte(shard(1), 0);  // no longer known as a shard by its own bytes
  is_mended(1);
  fs::remove(shard(3));
  is_mended(3);
  EXPECT_EQ(fs::last_write_time(shard(0)), first);
}

// Flips a bit in every byte of every file: the index, a header, tokens, the checksums behind them.
TEST_F(TokenShards, NoFlippedBitIsAccepted) {
  prepare_shards(files_, folder(), {.shard_tokens = 700});
  for (const std::string& file : {folder() + "/index.json", shard(0), shard(1)}) {
    const auto size = static_cast<int64_t>(fs::file_size(file));
    for (int64_t at = 0; at < size; ++at) {
      flip_bit(file, at, static_cast<int>(at % 8));
      EXPECT_THROW(verify_shards(folder()), Error) << file << " byte " << at;
      EXPECT_THROW(train_on(folder()), Error) << file << " byte " << at;
      flip_bit(file, at, static_cast<int>(at % 8));
    }
  }
  train_on(folder());
}

TEST_F(TokenShards, AChunkIsCheckedWhenItIsFirstRead) {
  write("a.txt", generate_sentences(3, 100'000));
  prepare_shards({path("a.txt")}, folder(), {.shard_tokens = 100'000});  // 200,000 bytes: four chunks
  flip_byte(shard(0), 64 + 2 * 65'536 + 5);
  const auto tokens = open_shards(folder());
  std::vector<int64_t> some(100);
  tokens->read(0, some);
  tokens->read(65'435, some);  // the last ones before it
  tokens->read(98'304, some);  // the first ones behind it
  expect_bad_file([&] { tokens->read(90'000, some); }, shard(0), "bytes 131072 to 196608");
}

TEST_F(TokenShards, AShardThatIsCutOffUnderARunIsNamed) {
  prepare_shards(files_, folder(), {.shard_tokens = 700});
  const auto tokens = open_shards(folder());
  std::vector<int64_t> some(100);
  tokens->read(0, some);
  fs::resize_file(shard(0), 100);
  expect_bad_file([&] { tokens->read(300, some); }, shard(0), "became shorter while it was read");
  fs::resize_file(shard(1), 0);
  expect_bad_file([&] { tokens->read(700, some); }, shard(1), "became shorter while it was read");
}

TEST_F(TokenShards, ManyAreReadWithFewDescriptors) {
  prepare_shards(files_, folder(), {.shard_tokens = 5});
  const auto open = [] { return std::distance(fs::directory_iterator("/proc/self/fd"), {}); };
  const auto before = open();
  const auto tokens = open_shards(folder());
  std::vector<int64_t> all(text_.size());
  tokens->read(0, all);
  EXPECT_EQ(all, ByteTokenizer::encode(text_));
  EXPECT_LE(open() - before, 64);
}

// Folders that were made before there were checksums by chunk.
class OldTokenShards : public TokenShards {
 protected:
  // One shard of these 16-bit tokens.
  void write_old(const std::vector<uint16_t>& tokens) const {
    const std::string_view payload(reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof(uint16_t));
    const shards::Header header = {.version = 1,
                                   .width = 2,
                                   .tokens = tokens.size(),
                                   .vocab_size = 256,
                                   .hash = shards::fnv1a(shards::kFnvBasis, payload)};
    fs::create_directories(folder());
    write("shards/old.bin", std::string(reinterpret_cast<const char*>(&header), sizeof header) + std::string(payload));
    write(
        "shards/index.json",
        R"({"format": "ranklab-token-shards", "version": 1, "dtype": "uint16", "vocab_size": 256, "shard_tokens": 1000,
              "complete": true, "inputs": [], "shards": [{"file": "old.bin", "tokens": )" +
            std::to_string(tokens.size()) + ", \"hash\": " + std::to_string(header.hash) + "}]}");
  }
};

TEST_F(OldTokenShards, AreReadAndCheckedWhole) {
  write_old({1, 2, 3, 255, 5, 6});
  verify_shards(folder());
  std::vector<int64_t> some(2);
  open_shards(folder())->read(2, some);
  EXPECT_EQ(some, (std::vector<int64_t>{3, 255}));
  flip_byte(folder() + "/old.bin", 64 + 10);
  expect_bad_file([&] { open_shards(folder())->read(2, some); }, "old.bin", "damaged");
}

TEST_F(OldTokenShards, ATokenOutsideTheVocabularyIsRefused) {
  write_old({1, 2, 300});
  std::vector<int64_t> some(3);
  expect_bad_file([&] { open_shards(folder())->read(0, some); }, "old.bin", "outside the vocabulary");
}

TEST_F(TokenShards, ADamagedIndexIsNamed) {
  prepare_shards(files_, folder(), {.shard_tokens = 100});
  for (const char* text : {"", "{", "{}", "[1]", "{\"format\":\"ranklab-token-shards\",\"version\":1}"}) {
    write("shards/index.json", text);
    expect_bad_file([&] { open_shards(folder()); }, "index.json", "damaged");
  }
}

// Each of two runs would report its shards as written, and the folder would have those of the last one.
TEST_F(TokenShards, AreWrittenByOneProcessAtATime) {
  fs::create_directories(folder());
  {
    const FolderLock other(folder(), "test", "--out");
    try {
      prepare_shards(files_, folder(), {});
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
      EXPECT_THAT(error.what(), HasSubstr("another process is writing into this folder; got '" + folder() + "'"));
    }
    EXPECT_TRUE(fs::is_empty(folder()));
  }
  prepare_shards(files_, folder(), {});
  train_on(folder());
}

}  // namespace
}  // namespace ranklab
