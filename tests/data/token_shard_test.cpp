#include "core/data/token_shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "core/data/corpus.h"
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
  void flip_byte(const std::string& file, int64_t at) const {
    std::fstream f(file, std::ios::in | std::ios::out | std::ios::binary);
    f.seekg(at);
    const char c = static_cast<char>(f.get() ^ 1);
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
  expect_bad_file([&] { open_shards(folder()); }, shard(1), "264 bytes");
  fs::resize_file(shard(1), 10);
  expect_bad_file([&] { open_shards(folder()); }, shard(1), "cut off");
  fs::remove_all(folder());
  prepare_shards(files_, folder(), {.shard_tokens = 100});
  flip_byte(shard(0), 0);
  expect_bad_file([&] { open_shards(folder()); }, shard(0), "no token shard");
  flip_byte(shard(0), 0);
  flip_byte(shard(2), 64 + 20);
  expect_bad_file([&] { verify_shards(folder()); }, shard(2), "damaged");
  flip_byte(shard(2), 64 + 20);
  flip_byte(shard(2), 64 + 21);  // a token of 256 or more
  const auto tokens = open_shards(folder());
  std::vector<int64_t> all(text_.size());
  expect_bad_file([&] { tokens->read(0, all); }, shard(2), "outside the vocabulary");
}

TEST_F(TokenShards, ADamagedIndexIsNamed) {
  prepare_shards(files_, folder(), {.shard_tokens = 100});
  for (const char* text : {"", "{", "{}", "[1]", "{\"format\":\"ranklab-token-shards\",\"version\":1}"}) {
    write("shards/index.json", text);
    expect_bad_file([&] { open_shards(folder()); }, "index.json", "damaged");
  }
}

}  // namespace
}  // namespace ranklab
