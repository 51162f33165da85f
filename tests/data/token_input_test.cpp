// What each format of input gives as tokens, and what is refused in hostile ones.
#include "core/data/token_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "core/data/token_shard.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using Tokens = std::vector<uint32_t>;

class TokenInputs : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) / ("ranklab_inputs_" + std::to_string(::getpid()));
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(root_ / name, std::ios::binary) << bytes;
    return (root_ / name).string();
  }
  // Read a few at a time, so that everything is cut everywhere; scan_input() reads all at once.
  static Tokens read(const std::string& path, const InputFormat& format, size_t at_once, uint64_t skip = 0) {
    const auto input = open_token_input(path, format);
    if (skip > 0) input->skip(skip);
    Tokens all, some(at_once);
    while (const size_t got = input->read(some))
      all.insert(all.end(), some.begin(), some.begin() + static_cast<long>(got));
    return all;
  }
  static void expect_tokens(const std::string& path, const InputFormat& format, const Tokens& want) {
    for (const size_t at_once : {1, 2, 3, 1000}) EXPECT_EQ(read(path, format, at_once), want) << at_once;
    for (size_t skip = 1; skip < want.size(); ++skip)
      EXPECT_EQ(read(path, format, 2, skip), Tokens(want.begin() + static_cast<long>(skip), want.end())) << skip;
    EXPECT_EQ(scan_input(path, format).tokens, want.size());
    EXPECT_EQ(scan_input(path, format).largest, want.empty() ? 0 : *std::max_element(want.begin(), want.end()));
  }
  static std::string refusal(const std::string& path, const InputFormat& format) {
    try {
      scan_input(path, format);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kBadFile) << error.what();
      EXPECT_THAT(error.what(), HasSubstr(path));
      return error.what();
    }
    return "accepted";
  }
  fs::path root_;
};

TEST_F(TokenInputs, ATextIsOneDocument) {
  const std::string file = write("a.txt", "ab\n\xff");
  expect_tokens(file, {}, {'a', 'b', '\n', 255});
  expect_tokens(file, {.end_token = 0}, {'a', 'b', '\n', 255, 0});
  expect_tokens(file, {.end_token = 50256}, {'a', 'b', '\n', 255, 50256});
  expect_tokens(write("empty.txt", ""), {.end_token = 0}, {});
}

// Only at the start of a file is it a mark.
TEST_F(TokenInputs, AByteOrderMarkIsNoText) {
  const std::string mark = "\xef\xbb\xbf";
  expect_tokens(write("a.txt", mark + "ab" + mark), {.end_token = 0}, {'a', 'b', 0xef, 0xbb, 0xbf, 0});
  expect_tokens(write("mark.txt", mark), {.end_token = 0}, {});
  expect_tokens(write("a.jsonl", mark + "{\"text\": \"ab\"}\n"), {.end_token = 0}, {'a', 'b', 0});
  EXPECT_THAT(refusal(write("b.txt", mark + "a\nb"), {.end_token = '\n'}), HasSubstr("10 at byte 4"));
}

TEST_F(TokenInputs, ALineOfJsonIsADocument) {
  const std::string file = write("a.jsonl",
                                 "{\"id\": 1, \"text\": \"ab\"}\n\n{\"text\": \"\"}\r\n"
                                 "{\"of\": {\"text\": \"no\", \"a\": [1, {\"text\": 2}]}, \"text\": \"\\u00e9\\n\"}");
  expect_tokens(file, {}, {'a', 'b', 0xc3, 0xa9, '\n'});
  expect_tokens(file, {.end_token = 0}, {'a', 'b', 0, 0xc3, 0xa9, '\n', 0});
  expect_tokens(write("a.json", "{\"text\": \"ab\"}\n{\"text\": \"c\"}\n"), {.end_token = 0}, {'a', 'b', 0, 'c', 0});
  expect_tokens(write("b.jsonl", "{\"text\": 1, \"body\": \"x\"}\n"), {.end_token = 300, .json_key = "body"},
                {'x', 300});
}

TEST_F(TokenInputs, ABadLineIsNamed) {
  const std::string good = "{\"text\": \"good\"}\n";
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"{\"text\": \"a\"", "invalid JSON"},
      {"{\"text\": \"a\"} {}", "invalid JSON"},
      {"{\"text\": \"\xff\"}", "invalid JSON"},
      {"{\"text\": \"\\ud800\"}", "surrogate"},
      {"{\"text\": \"\\ud800\\u0041\"}", "surrogate"},
      {"{\"text\": \"\\x41\"}", "invalid JSON"},
      {std::string("{\"text\": \"a\"}\0{", 15), "a zero byte"},
      {"[\"text\"]", "not a JSON object; got an array"},
      {"\"text\"", "not a JSON object; got a string"},
      {"{\"body\": \"a\"}", "no key"},
      {"{\"text\": {\"text\": \"a\"}}", "is not a string; got an object"},
      {"{\"text\": null}", "is not a string; got null"},
      {"{\"text\": \"a\", \"text\": \"b\"}", "twice"},
      {std::string(1'000'000, '['), "not a JSON object"},
      {"{\"a\": " + std::string(1'000'000, '['), "invalid JSON"},
      {"{\"text\": \"" + std::string(1'000'000, 'a') + "\x01\"}", "invalid JSON"},
  };
  for (const auto& [line, what] : rows) {
    const std::string message = refusal(write("bad.jsonl", good + good + line + "\n" + good), {});
    EXPECT_THAT(message, HasSubstr("line 3")) << what;
    EXPECT_THAT(message, HasSubstr(what));
    EXPECT_LT(message.size(), 700u) << "shows the whole line";
  }
}

TEST_F(TokenInputs, DeepAndLongLinesThatAreSoundAreRead) {
  const std::string deep = std::string(300'000, '[') + std::string(300'000, ']');
  const std::string text(3'000'000, 'x');
  const std::string file = write("deep.jsonl", "{\"a\": " + deep + ", \"text\": \"" + text + "\"}\n");
  EXPECT_EQ(scan_input(file, {.end_token = 0}).tokens, text.size() + 1);
}

TEST_F(TokenInputs, ALineWithoutEndIsRefusedBeforeItFillsTheMemory) {
  const std::string file = write("long.jsonl", "{\"text\": \"");
  fs::resize_file(file, uint64_t{8} << 30);  // sparse
  EXPECT_THAT(refusal(file, {}), HasSubstr("line 1: the line is too long"));
}

TEST_F(TokenInputs, AnEndInsideADocumentIsRefused) {
  EXPECT_THAT(refusal(write("a.txt", std::string("ab\0c", 4)), {.end_token = 0}), HasSubstr("got 0 at byte 2"));
  const std::string file = write("a.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\\u0000\"}\n");
  EXPECT_THAT(refusal(file, {.end_token = 0}), HasSubstr("line 2: a document contains the token that ends documents"));
  expect_tokens(file, {.end_token = 256}, {'a', 256, 'b', 0, 256});
  expect_tokens(file, {}, {'a', 'b', 0});
}

std::string int32s(const std::vector<int32_t>& head, size_t count) {
  std::vector<int32_t> all(count);
  std::copy(head.begin(), head.end(), all.begin());
  return {reinterpret_cast<const char*>(all.data()), all.size() * sizeof(int32_t)};
}
std::string uint16s(const std::vector<uint16_t>& tokens) {
  return {reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof(uint16_t)};
}

TEST_F(TokenInputs, FilesOfTokensAreThoseTokens) {
  const std::string tokens = uint16s({50256, 1, 2, 65535, 0});
  const Tokens want = {50256, 1, 2, 65535, 0};
  expect_tokens(write("f.bin", int32s({20240520, 1, 5}, 256) + tokens), {.from = "fineweb"}, want);
  expect_tokens(write("n.bin", tokens), {.from = "nanogpt"}, want);
  expect_tokens(write("none.bin", int32s({20240520, 1, 0}, 256)), {.from = "fineweb"}, {});
  EXPECT_THROW(open_token_input(write("n.bin", tokens), {.from = "nanogpt", .end_token = 0}), Error);
  EXPECT_THROW(open_token_input(write("n.bin", tokens), {.from = "other"}), Error);
}

TEST_F(TokenInputs, DamagedFilesOfTokensAreNamed) {
  const std::string tokens = uint16s({1, 2, 3});
  const auto fineweb = [&](const std::string& bytes) { return refusal(write("f.bin", bytes), {.from = "fineweb"}); };
  EXPECT_THAT(fineweb(""), HasSubstr("header is cut off"));
  EXPECT_THAT(fineweb(int32s({20240520, 1, 0}, 255)), HasSubstr("header is cut off"));
  EXPECT_THAT(fineweb(int32s({20240521, 1, 3}, 256) + tokens), HasSubstr("got 20240521; want 20240520"));
  EXPECT_THAT(fineweb(int32s({20240520, 2, 3}, 256) + tokens), HasSubstr("unknown version"));
  EXPECT_THAT(fineweb(int32s({20240520, 1, -3}, 256) + tokens), HasSubstr("impossible number of tokens"));
  EXPECT_THAT(fineweb(int32s({20240520, 1, 4}, 256) + tokens), HasSubstr("cut off; got 1030 bytes; want 1032 bytes"));
  EXPECT_THAT(fineweb(int32s({20240520, 1, INT32_MAX}, 256) + tokens), HasSubstr("cut off"));
  EXPECT_THAT(fineweb(int32s({20240520, 1, 2}, 256) + tokens), HasSubstr("too long"));
  EXPECT_THAT(refusal(write("n.bin", "abc"), {.from = "nanogpt"}), HasSubstr("half a token"));
  EXPECT_THAT(refusal(write("n.bin", int32s({20240520, 1, 0}, 256)), {.from = "nanogpt"}), HasSubstr("--from fineweb"));
}

class PreparedInputs : public TokenInputs {
 protected:
  std::string folder() const { return (root_ / "shards").string(); }
  Tokens prepared() const {
    const auto tokens = open_shards(folder());
    std::vector<int64_t> all(static_cast<size_t>(tokens->size()));
    tokens->read(0, all);
    return {all.begin(), all.end()};
  }
  static std::string bytes(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

// Cut off after each shard in turn, and run again: every file is that of a run that was not cut off.
TEST_F(PreparedInputs, AKilledRunGoesOnInTheMiddleOfADocument) {
  std::string lines;
  for (int i = 0; i < 20; ++i) lines += "{\"text\": \"document " + std::to_string(i * i) + "\"}\n";
  const std::vector<std::string> files = {write("a.jsonl", lines), write("b.txt", "text"), write("c.jsonl", lines)};
  PrepareOptions options = {.shard_tokens = 37, .format = {.end_token = 0}};
  const size_t shards = prepare_shards(files, folder(), options).index.shards.size();
  ASSERT_GT(shards, 10u);
  Tokens want;
  for (const std::string& file : files)
    for (const uint32_t token : read(file, options.format, 100)) want.push_back(token);
  EXPECT_EQ(prepared(), want);
  const fs::path whole = root_ / "whole";
  fs::rename(folder(), whole);
  for (size_t cut = 1; cut < shards; ++cut) {
    fs::remove_all(folder());
    options.progress = [cut](int64_t done, int64_t) {
      if (done == static_cast<int64_t>(cut) * 37) throw std::runtime_error("cut off");
    };
    EXPECT_THROW(prepare_shards(files, folder(), options), std::runtime_error);
    options.progress = {};
    EXPECT_EQ(prepare_shards(files, folder(), options).resumed_shards, cut);
    for (const auto& entry : fs::directory_iterator(whole))
      EXPECT_EQ(bytes(entry.path()), bytes(folder() / entry.path().filename())) << entry.path() << ", cut " << cut;
  }
}

TEST_F(PreparedInputs, OtherDocumentSettingsAreRefused) {
  const std::vector<std::string> files = {write("a.jsonl", "{\"text\": \"ab\", \"body\": \"cd\"}\n")};
  prepare_shards(files, folder(), {.format = {.end_token = 0}});
  for (const InputFormat& other :
       {InputFormat{}, InputFormat{.end_token = 1}, InputFormat{.end_token = 0, .json_key = "body"}})
    EXPECT_THROW(prepare_shards(files, folder(), {.format = other}), Error);
  EXPECT_EQ(prepare_shards(files, folder(), {.format = {.end_token = 0}}).resumed_shards, 1u);
}

TEST_F(PreparedInputs, TheVocabularyIsThatOfTheTokens) {
  const std::string tokens = write("n.bin", uint16s({7, 50256}));
  prepare_shards({tokens, tokens}, folder(), {.format = {.from = "nanogpt"}});
  EXPECT_EQ(read_shard_index(folder()).vocab_size, 50257);
  EXPECT_THAT(prepared(), ElementsAre(7, 50256, 7, 50256));
  fs::remove_all(folder());
  const PrepareOptions large = {.format = {.end_token = 70'000}};
  EXPECT_THROW(prepare_shards({write("a.txt", "a")}, folder(), large), Error) << "no 16-bit token";
  prepare_shards({write("a.txt", "a")}, folder(), {.width = TokenWidth::kUint32, .format = {.end_token = 70'000}});
  EXPECT_THAT(prepared(), ElementsAre('a', 70'000));
  fs::remove_all(folder());
  // Characters, as nanoGPT's shakespeare_char numbers them.
  prepare_shards({write("n.bin", uint16s({7, 64}))}, folder(), {.format = {.from = "nanogpt"}});
  EXPECT_EQ(read_shard_index(folder()).vocab_size, 65);
  EXPECT_THAT(prepared(), ElementsAre(7, 64));
  fs::remove_all(folder());
  prepare_shards({write("a.txt", "a")}, folder(), {});
  EXPECT_EQ(read_shard_index(folder()).vocab_size, 256) << "of bytes, whichever there are";
}

}  // namespace
}  // namespace ranklab
