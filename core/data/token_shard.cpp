#include "core/data/token_shard.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/files/input_file.h"
#include "core/base/json_integer.h"
#include "core/data/shard_file.h"
#include "core/data/shard_format.h"
#include "core/data/tokenizer/tokenizer.h"

namespace ranklab {
namespace {

using namespace shards;
namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int64_t kMostTokens = int64_t{1} << 48;

class ShardTokens : public TokenSequence {
 public:
  ShardTokens(const std::string& folder, ShardIndex index) : index_(std::move(index)) {
    const auto files = std::make_shared<OpenFiles>();
    for (size_t i = 0; i < index_.shards.size(); ++i) {
      shards_.push_back(std::make_unique<ShardFile>(folder, index_, i, files));
      ends_.push_back(size() + index_.shards[i].tokens);
    }
  }
  int64_t size() const override { return ends_.empty() ? 0 : ends_.back(); }

  void read(int64_t begin, std::span<int64_t> out) const override {
    RANKLAB_CHECK(begin >= 0 && begin + static_cast<int64_t>(out.size()) <= size(), ErrorKind::kInternal,
                  .where = "data", .what = "tokens out of range", .got = std::to_string(begin));
    auto shard = static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), begin) - ends_.begin());
    for (; !out.empty(); ++shard) {
      const size_t count = std::min(out.size(), static_cast<size_t>(ends_[shard] - begin));
      const auto offset = static_cast<size_t>(begin - (shard == 0 ? 0 : ends_[shard - 1]));
      copy(shard, offset, out.first(count));
      out = out.subspan(count);
      begin += static_cast<int64_t>(count);
    }
  }

 private:
  template <typename T>
  void copy_as(const char* from, std::span<int64_t> out) const {
    for (size_t i = 0; i < out.size(); ++i) {
      T token;
      std::memcpy(&token, from + i * sizeof(T), sizeof(T));
      out[i] = static_cast<int64_t>(token);
    }
  }
  void copy(size_t shard, size_t offset, std::span<int64_t> out) const {
    const auto width = static_cast<size_t>(index_.width);
    std::vector<char> bytes(out.size() * width);
    shards_[shard]->read(offset * width, bytes);
    index_.width == TokenWidth::kUint16 ? copy_as<uint16_t>(bytes.data(), out) : copy_as<uint32_t>(bytes.data(), out);
    // A token outside the vocabulary would index past the embedding, and a valid checksum does not exclude it.
    for (const int64_t token : out) {
      if (token >= index_.vocab_size)
        refuse_file(shards_[shard]->path(), "token outside the vocabulary", std::to_string(token),
                    "below " + std::to_string(index_.vocab_size));
    }
  }
  ShardIndex index_;
  std::vector<std::unique_ptr<ShardFile>> shards_;
  std::vector<int64_t> ends_;
};

// Runs after all other checks, so that an invalid field is reported by its name.
void check_own_hash(const std::string& path, Json json) {
  const auto want = json.at(kIndexHash).get<std::string>();
  json.erase(kIndexHash);
  if (const std::string got = index_hash(json.dump(kIndexIndent)); got != want)
    refuse_file(path, "the index is damaged", "xxh3 " + got, "xxh3 " + want);
}

ShardInput parse_input(const std::string& path, const Json& json) {
  ShardInput input = {.path = json.at("path").get<std::string>(),
                      .bytes = json_integer<uint64_t>(json.at("bytes"), "bytes"),
                      .hash = json_integer<uint64_t>(json.at("hash"), "hash")};
  input.tokens = json.contains("tokens") ? json_integer<int64_t>(json.at("tokens"), "tokens")
                                         : json_integer<int64_t>(json.at("bytes"), "bytes");
  if (input.tokens < 0 || input.tokens > kMostTokens)
    refuse_file(path, "impossible token count of an input", std::to_string(input.tokens), "0 to 2^48");
  return input;
}

ShardIndex parse_index(const std::string& path, const Json& json) {
  if (json.at("format") != "ranklab-token-shards" || (json.at("version") != 1 && json.at("version") != kVersion))
    refuse_file(path, "unknown format", json.at("version").dump(), "ranklab-token-shards version 1 or 2");
  ShardIndex index{.version = json_integer<uint32_t>(json.at("version"), "version"),
                   .vocab_size = json_integer<int64_t>(json.at("vocab_size"), "vocab_size"),
                   .shard_tokens = json_integer<int64_t>(json.at("shard_tokens"), "shard_tokens"),
                   .complete = json.at("complete").get<bool>()};
  const auto dtype = json.at("dtype").get<std::string>();
  if (dtype != "uint16" && dtype != "uint32") refuse_file(path, "unknown dtype", dtype, "uint16 or uint32");
  index.width = dtype == "uint16" ? TokenWidth::kUint16 : TokenWidth::kUint32;
  // Older folders, which can only contain text, lack these keys.
  if (json.contains("from")) index.format.from = json.at("from").get<std::string>();
  if (json.contains("json_key")) index.format.json_key = json.at("json_key").get<std::string>();
  if (json.contains("tokenizer")) index.format.tokenizer = json.at("tokenizer").get<std::string>();
  if (json.contains("eod_token")) index.format.end_token = json_integer<uint32_t>(json.at("eod_token"), "eod_token");
  for (const Json& input : json.at("inputs")) index.inputs.push_back(parse_input(path, input));
  for (const Json& shard : json.at("shards")) {
    index.shards.push_back({.name = shard.at("file").get<std::string>(),
                            .tokens = json_integer<int64_t>(shard.at("tokens"), "tokens"),
                            .hash = json_integer<uint64_t>(shard.at("hash"), "hash")});
    const ShardInfo& info = index.shards.back();
    if (fs::path(info.name).filename() != info.name)
      refuse_file(path, "a shard lies outside the folder", info.name, "a plain file name");
    if (info.tokens <= 0 || info.tokens > kMostTokens)
      refuse_file(path, "impossible token count", std::to_string(info.tokens), "1 to 2^48");
  }
  if (index.version > 1) check_own_hash(path, json);
  return index;
}

}  // namespace

int64_t ShardIndex::tokens() const {
  int64_t sum = 0;
  for (const ShardInfo& shard : shards) sum += shard.tokens;
  return sum;
}

ShardIndex read_shard_index(const std::string& folder) {
  const std::string path = path_in(folder, "index.json");
  constexpr size_t kLimitBytes = 64 << 20;
  const std::string text = read_whole_file(
      path, kLimitBytes, {.where = "data", .fix = "make the folder with ranklab data prepare, or check the path"});
  try {
    return parse_index(path, Json::parse(text));
  } catch (const Json::exception& error) {
    refuse_file(path, "the index is damaged", error.what(), "the index that ranklab data prepare writes");
  } catch (const Error& error) {  // json_integer() does not know the file name
    if (error.text().where != "JSON") throw;
    refuse_file(path, "the index is damaged: " + error.text().what, error.text().got, error.text().want);
  }
}

std::optional<Tokenizer> open_shard_tokenizer(const std::string& folder, const ShardIndex& index) {
  if (index.format.tokenizer.empty()) return {};
  std::optional<Tokenizer> tokenizer = find_tokenizer(folder);
  const std::string path = path_in(folder, kTokenizerFile);
  if (!tokenizer) refuse_file(path, "the tokenizer is missing", "no file", "the one that made the tokens");
  if (tokenizer->hash() != index.format.tokenizer)
    refuse_file(path, "not the tokenizer that made the tokens", "xxh3 " + tokenizer->hash(),
                "xxh3 " + index.format.tokenizer);
  return tokenizer;
}

void verify_shards(const std::string& folder) {
  const ShardIndex index = read_shard_index(folder);
  open_shard_tokenizer(folder, index);
  const auto files = std::make_shared<OpenFiles>();
  for (size_t i = 0; i < index.shards.size(); ++i) ShardFile(folder, index, i, files).verify();
}

std::shared_ptr<const TokenSequence> open_shards(const std::string& folder) {
  ShardIndex index = read_shard_index(folder);
  if (!index.complete)
    refuse_file(path_in(folder, "index.json"), "preparation was not finished",
                std::to_string(index.shards.size()) + " shards", "a complete folder (run data prepare again)");
  return std::make_shared<ShardTokens>(folder, std::move(index));
}

}  // namespace ranklab
