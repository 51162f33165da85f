// Megatron-LM's indexed datasets, both ways: by bytes written here by hand, and what is refused in hostile ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "core/data/megatron_output.h"
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

template <typename T>
std::string bytes(const std::vector<T>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)};
}

// As IndexedDatasetBuilder writes it: of two documents, the second in two sequences.
struct IndexText {
  std::string magic = std::string("MMIDIDX\0\0", 9);
  uint64_t version = 1;
  uint8_t dtype = 8;
  std::vector<int32_t> lengths = {3, 1, 2};
  std::vector<int64_t> begins = {0, 6, 8};
  std::vector<int64_t> ends = {0, 1, 3};
  uint64_t sequences = 3, documents = 3;
  std::string rest = {};
  std::string text() const {
    return magic + bytes<uint64_t>({version}) + bytes<uint8_t>({dtype}) + bytes<uint64_t>({sequences, documents}) +
           bytes(lengths) + bytes(begins) + bytes(ends) + rest;
  }
};

class MegatronFiles : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }
  std::string at(const std::string& name) const { return (root_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(at(name), std::ios::binary) << text;
    return at(name);
  }
  static std::string read_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static Tokens read(const std::string& path, uint64_t skip = 0) {
    const auto input = open_token_input(path, {.from = "megatron"});
    if (skip > 0) input->skip(skip);
    Tokens all, some(2);
    while (const size_t got = input->read(some))
      all.insert(all.end(), some.begin(), some.begin() + static_cast<long>(got));
    return all;
  }
  std::string refusal(const IndexText& index, const std::string& tokens) const {
    write("d.idx", index.text());
    try {
      read(write("d.bin", tokens));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kBadFile) << error.what();
      return error.what();
    }
    return "accepted";
  }
  fs::path root_ = fs::path(testing::TempDir()) / ("ranklab_megatron_" + std::to_string(::getpid()));
};

const std::string kTokens = bytes<uint16_t>({1, 2, 0, 50256, 7, 0});

TEST_F(MegatronFiles, AreTheTokensOfTheirSequences) {
  write("d.idx", IndexText{}.text());
  write("d.bin", kTokens);
  for (const char* name : {"d.bin", "d.idx", "d"}) EXPECT_THAT(read(at(name)), ElementsAre(1, 2, 0, 50256, 7, 0));
  EXPECT_THAT(read(at("d"), 4), ElementsAre(7, 0));
  write("d.idx", IndexText{.dtype = 4, .begins = {0, 12, 16}}.text());
  write("d.bin", bytes<int32_t>({1, 2, 0, 151643, 7, 0}));
  EXPECT_THAT(read(at("d")), ElementsAre(1, 2, 0, 151643, 7, 0));
  write("d.idx", IndexText{.dtype = 5, .begins = {0, 24, 32}}.text());
  write("d.bin", bytes<int64_t>({1, 2, 0, 151643, 7, 0}));
  EXPECT_THAT(read(at("d")), ElementsAre(1, 2, 0, 151643, 7, 0));
  write("d.idx", IndexText{.dtype = 1, .begins = {0, 3, 4}}.text());
  write("d.bin", bytes<uint8_t>({1, 2, 0, 255, 7, 0}));
  EXPECT_THAT(read(at("d")), ElementsAre(1, 2, 0, 255, 7, 0));
}

TEST_F(MegatronFiles, DamagedOnesAreNamed) {
  EXPECT_THAT(refusal({.magic = "MMIDIDX"}, kTokens), HasSubstr("d.idx'"));
  EXPECT_THAT(refusal({.magic = std::string(9, 'x')}, kTokens), HasSubstr("does not begin as an index"));
  EXPECT_THAT(refusal({.version = 2}, kTokens), HasSubstr("unknown version; got 2"));
  EXPECT_THAT(refusal({.dtype = 6}, kTokens), HasSubstr("code 6"));
  EXPECT_THAT(refusal({.sequences = 4}, kTokens), HasSubstr("the index is cut off"));
  EXPECT_THAT(refusal({.sequences = ~uint64_t{0}}, kTokens), HasSubstr("more sequences than the file has"));
  EXPECT_THAT(refusal({.sequences = uint64_t{1} << 62}, kTokens), HasSubstr("more sequences than the file has"));
  EXPECT_THAT(refusal({.documents = uint64_t{1} << 61}, kTokens), HasSubstr("more sequences than the file has"));
  EXPECT_THAT(refusal({.documents = 2}, kTokens), HasSubstr("the index is too long"));
  EXPECT_THAT(refusal({.rest = "abc"}, kTokens), HasSubstr("pictures and text"));
  EXPECT_THAT(refusal({.lengths = {3, -1, 2}}, kTokens), HasSubstr("sequence 1 does not follow"));
  EXPECT_THAT(refusal({.begins = {0, 0, 0}}, kTokens), HasSubstr("sequence 1 does not follow"));
  EXPECT_THAT(refusal({.begins = {0, 6, -8}}, kTokens), HasSubstr("sequence 2 does not follow"));
  EXPECT_THAT(refusal({}, kTokens.substr(2)), HasSubstr("d.bin': the file is cut off; got 10 bytes; want 12 bytes"));
  EXPECT_THAT(refusal({}, kTokens + "ab"), HasSubstr("d.bin': the file is too long"));
  EXPECT_THAT(refusal({.dtype = 4, .begins = {0, 12, 16}}, bytes<int32_t>({1, -2, 0, 1, 7, 0})),
              HasSubstr("no token at byte 4; got -2"));
  fs::remove(at("d.idx"));
  EXPECT_THROW(read(at("d.bin")), Error);
}

TEST_F(MegatronFiles, ShardsBecomeDocuments) {
  const std::vector<std::string> files = {write("a.jsonl", "{\"text\": \"ab\"}\n{\"text\": \"c\"}\n"),
                                          write("empty.txt", ""), write("b.txt", "de")};
  prepare_shards(files, at("shards"), {.shard_tokens = 2, .format = {.end_token = 0}});
  const MegatronExported made = export_megatron(at("shards"), at("out.bin"));
  EXPECT_EQ(made.documents, 3);
  EXPECT_EQ(read_file(at("out.bin")), bytes<uint16_t>({'a', 'b', 0, 'c', 0, 'd', 'e', 0}));
  const IndexText want{.lengths = {3, 2, 3}, .begins = {0, 6, 10}, .ends = {0, 1, 2, 3}, .documents = 4};
  EXPECT_EQ(read_file(at("out.idx")), want.text());
  EXPECT_THAT(read(at("out")), ElementsAre('a', 'b', 0, 'c', 0, 'd', 'e', 0));
  fs::remove_all(at("shards"));
  prepare_shards(files, at("shards"), {});  // without ends, an input that is not empty is a document
  EXPECT_EQ(export_megatron(at("shards"), at("out")).documents, 2);
  EXPECT_EQ(read_file(at("out.bin")), bytes<uint16_t>({'a', 'b', 'c', 'd', 'e'}));
}

// The tokenizer that goes along says which vocabulary it is, and so how wide a token.
TEST_F(MegatronFiles, ThereAndBackTokensAndTokenizerAreTheSame) {
  Tokenizer gpt2(golden_text("gpt2.json"), "gpt2.json");
  const std::string file = write("a.txt", "The ranks agree.");
  prepare_shards({file}, at("shards"), {.format = {.end_token = 0}, .tokenizer = &gpt2});
  EXPECT_EQ(export_megatron(at("shards"), at("out")).dtype, "uint16");
  prepare_shards({at("out.bin")}, at("back"), {.format = {.from = "megatron"}, .tokenizer = &gpt2});
  // Its users' name of the two files is the same work.
  EXPECT_EQ(
      prepare_shards({at("out")}, at("back"), {.format = {.from = "megatron"}, .tokenizer = &gpt2}).resumed_shards, 1);
  const auto there = open_shards(at("shards")), back = open_shards(at("back"));
  std::vector<int64_t> a(static_cast<size_t>(there->size())), b(static_cast<size_t>(back->size()));
  there->read(0, a);
  back->read(0, b);
  EXPECT_EQ(a, b);
  EXPECT_EQ(open_shard_tokenizer(at("back"), read_shard_index(at("back")))->hash(), gpt2.hash());
  write("d.idx", IndexText{}.text());
  write("d.bin", kTokens);
  try {
    prepare_shards({at("d.bin")}, at("other"), {.format = {.from = "megatron"}, .tokenizer = &gpt2});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("a token is outside the tokenizer's vocabulary; got 50256"));
  }
  prepare_shards({write("b.txt", "a")}, at("wide"), {.width = TokenWidth::kUint32, .format = {.end_token = 70'000}});
  EXPECT_EQ(export_megatron(at("wide"), at("wide_out")).dtype, "int32");
  EXPECT_EQ(read_file(at("wide_out.bin")), bytes<int32_t>({'a', 70'000}));
}

}  // namespace
}  // namespace ranklab
