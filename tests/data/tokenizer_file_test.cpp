// Errors for tokenizer files that are damaged, hostile, or valid but of an unsupported kind.
#include "core/data/tokenizer/tokenizer_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/data/tokenizer/tokenizer.h"
#include "tests/data/tokenizer_golden.h"

namespace ranklab {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

// A small sound file, with one part of it replaced.
std::string file_with(const std::string& pointer, const json& value) {
  json file = json::parse(R"({"added_tokens": [{"id": 4, "content": "<x>", "special": true}], "normalizer": null,
      "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, "post_processor": null, "decoder": null,
      "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "?": 3}, "merges": [["a", "b"]]}})");
  file[json::json_pointer(pointer)] = value;
  return file.dump();
}

std::string refusal(const std::string& text, ErrorKind kind) {
  try {
    const Tokenizer tokenizer(text, "t.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_THAT(error.what(), HasSubstr("t.json"));
    return error.what();
  }
  return "accepted";
}

TEST(TokenizerFile, TheSmallOneIsSound) {
  Tokenizer tokenizer(file_with("/padding", nullptr), "t.json");
  EXPECT_THAT(tokenizer.encode("ab<x>ba"), testing::ElementsAre(2, 4, 1, 0));
  EXPECT_THAT(tokenizer.encode("acb"), testing::ElementsAre(2));  // bytes that are no token are left out
}

TEST(TokenizerFile, UnknownBytesAreTheUnknownToken) {
  json file = json::parse(file_with("/model/unk_token", "?"));
  EXPECT_THAT(Tokenizer(file.dump(), "t.json").encode("accb"), testing::ElementsAre(0, 3, 3, 1));
  file["model"]["fuse_unk"] = true;
  EXPECT_THAT(Tokenizer(file.dump(), "t.json").encode("accb"), testing::ElementsAre(0, 3, 1));
}

// "ab?" is a token that no merge makes.
TEST(TokenizerFile, AWordThatIsATokenIsThatTokenWhereMergesAreIgnored) {
  json file = json::parse(file_with("/model/vocab/ab?", 4));
  file["added_tokens"] = json::array();
  file["pre_tokenizer"]["use_regex"] = false;
  EXPECT_THAT(Tokenizer(file.dump(), "t.json").encode("ab?"), testing::ElementsAre(2, 3));
  file["model"]["ignore_merges"] = true;
  EXPECT_THAT(Tokenizer(file.dump(), "t.json").encode("ab?"), testing::ElementsAre(4));
}

TEST(TokenizerFile, WhatRanklabDoesNotHaveIsNamed) {
  const json other = {{"type", "Unigram"}, {"vocab", json::array()}};
  for (const auto& [text, why] : {std::pair<std::string, const char*>{file_with("/model", other), "got Unigram"},
                                  {file_with("/model/type", "WordPiece"), "got WordPiece"},
                                  {file_with("/model/byte_fallback", true), "byte_fallback"},
                                  {file_with("/model/dropout", 0.1), "dropout"},
                                  {file_with("/model/end_of_word_suffix", "</w>"), "end_of_word_suffix"},
                                  {file_with("/normalizer", {{"type", "Lowercase"}}), "got Lowercase"},
                                  {file_with("/pre_tokenizer", {{"type", "Metaspace"}}), "got Metaspace"},
                                  {file_with("/pre_tokenizer", nullptr), "does not work on bytes"},
                                  {file_with("/post_processor", {{"type", "BertProcessing"}}), "got BertProcessing"},
                                  {file_with("/decoder", {{"type", "WordPiece"}}), "got WordPiece"},
                                  {file_with("/added_tokens/0/content", std::string(5000, 'x')), "too long"}})
    EXPECT_THAT(refusal(text, ErrorKind::kInvalidArgument), HasSubstr(why));
}

TEST(TokenizerFile, DamageIsNamed) {
  for (const auto& [text, why] : {std::pair<std::string, const char*>{"", "not JSON"},
                                  {"{\"model\": ", "not JSON"},
                                  {"[]", "no object"},
                                  {"{}", "no \"model\""},
                                  {"\xff", "not JSON"},
                                  {file_with("/model/vocab", json::array()), "the vocabulary is not an object"},
                                  {file_with("/model/vocab", json::object()), "the vocabulary is empty"},
                                  {file_with("/model/vocab/a", -1), "not a token id"},
                                  {file_with("/model/vocab/a", 1e30), "not a token id"},
                                  {file_with("/model/vocab/a", 1), "two tokens have the same id"},
                                  {file_with("/model/vocab/a", 16777215), "wide gaps"},
                                  {file_with("/model/merges/0", "a c"), "a token that the vocabulary lacks; got 'c'"},
                                  {file_with("/model/merges/0", {"b", "a"}), "lacks; got 'ba'"},
                                  {file_with("/model/merges/0", "a b c"), "not a pair of tokens"},
                                  {file_with("/model/merges/0", 7), "not a pair of tokens"},
                                  {file_with("/model/unk_token", "absent"), "lacks its unknown token"},
                                  {file_with("/added_tokens/0/id", 2), "two tokens have the same id"},
                                  {file_with("/added_tokens/0/content", "ab"), "two ids"},
                                  {file_with("/added_tokens/0/id", 16000000), "wide gaps"},
                                  {file_with("/added_tokens/0/lstrip", "yes"), "not a Boolean"},
                                  {file_with("/post_processor", {{"type", "TemplateProcessing"},
                                                                 {"single", {{{"SpecialToken", {{"id", "q"}}}}}}}),
                                   "no object to look for"}})
    EXPECT_THAT(refusal(text, ErrorKind::kBadFile), HasSubstr(why));
}

TEST(TokenizerFile, HostileOnesCostLittle) {
  const std::string deep(2'000'000, '[');
  EXPECT_THAT(refusal(deep, ErrorKind::kBadFile), HasSubstr("not JSON"));
  const std::string nested = deep + std::string(deep.size(), ']');
  std::string in_place = file_with("/model/vocab", "HERE");
  in_place.replace(in_place.find("\"HERE\""), 6, nested);
  EXPECT_THAT(refusal(in_place, ErrorKind::kBadFile), HasSubstr("the vocabulary is not an object"));
  json steps = json::array();
  for (int i = 0; i < 100; ++i) steps.push_back({{"type", "NFC"}});
  EXPECT_THAT(
      refusal(file_with("/normalizer", {{"type", "Sequence"}, {"normalizers", steps}}), ErrorKind::kInvalidArgument),
      HasSubstr("too many steps"));
}

}  // namespace
}  // namespace ranklab
