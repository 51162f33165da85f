#include "core/data/token_shard.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/input_file.h"
#include "core/base/json_integer.h"
#include "core/base/text.h"
#include "core/data/shard_format.h"

namespace ranklab {
namespace {

using namespace shards;
namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

class MappedTokens : public TokenSequence {
 public:
  explicit MappedTokens(const std::string& folder) : index_(read_shard_index(folder)) {
    for (const ShardInfo& info : index_.shards) {
      shards_.push_back(std::make_unique<MappedShard>(folder, info, index_));
      ends_.push_back(size() + info.tokens);
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
    const char* from = shards_[shard]->payload().data() + offset * static_cast<size_t>(index_.width);
    index_.width == TokenWidth::kUint16 ? copy_as<uint16_t>(from, out) : copy_as<uint32_t>(from, out);
    // A token outside the vocabulary would index past the embedding; a flipped bit must not get that far.
    for (const int64_t token : out) {
      if (token >= index_.vocab_size)
        refuse_file(shards_[shard]->path(), "token outside the vocabulary", std::to_string(token),
                    "below " + std::to_string(index_.vocab_size));
    }
  }
  ShardIndex index_;
  std::vector<std::unique_ptr<MappedShard>> shards_;
  std::vector<int64_t> ends_;
};

ShardIndex parse_index(const std::string& path, const Json& json) {
  if (json.at("format") != "ranklab-token-shards" || json.at("version") != kVersion)
    refuse_file(path, "unknown format", json.at("version").dump(), "ranklab-token-shards version 1");
  ShardIndex index{.vocab_size = json_integer<int64_t>(json.at("vocab_size"), "vocab_size"),
                   .shard_tokens = json_integer<int64_t>(json.at("shard_tokens"), "shard_tokens"),
                   .complete = json.at("complete").get<bool>()};
  const auto dtype = json.at("dtype").get<std::string>();
  if (dtype != "uint16" && dtype != "uint32") refuse_file(path, "unknown dtype", dtype, "uint16 or uint32");
  index.width = dtype == "uint16" ? TokenWidth::kUint16 : TokenWidth::kUint32;
  for (const Json& input : json.at("inputs"))
    index.inputs.push_back({.path = input.at("path").get<std::string>(),
                            .bytes = json_integer<uint64_t>(input.at("bytes"), "bytes"),
                            .hash = json_integer<uint64_t>(input.at("hash"), "hash")});
  for (const Json& shard : json.at("shards")) {
    index.shards.push_back({.name = shard.at("file").get<std::string>(),
                            .tokens = json_integer<int64_t>(shard.at("tokens"), "tokens"),
                            .hash = json_integer<uint64_t>(shard.at("hash"), "hash")});
    const ShardInfo& info = index.shards.back();
    if (fs::path(info.name).filename() != info.name)
      refuse_file(path, "a shard lies outside the folder", info.name, "a plain file name");
    if (info.tokens <= 0 || info.tokens > (int64_t{1} << 48))
      refuse_file(path, "impossible token count", std::to_string(info.tokens), "1 to 2^48");
  }
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
  } catch (const Error& error) {  // json_integer() does not know the file
    if (error.text().where != "JSON") throw;
    refuse_file(path, "the index is damaged: " + error.text().what, error.text().got, error.text().want);
  }
}

void verify_shards(const std::string& folder) {
  const ShardIndex index = read_shard_index(folder);
  for (const ShardInfo& info : index.shards) {
    const MappedShard shard(folder, info, index);
    const uint64_t hash = fnv1a(kFnvBasis, shard.payload());
    if (hash != info.hash)
      refuse_file(shard.path(), "the tokens are damaged", "hash " + strprintf("%016lx", hash),
                  "hash " + strprintf("%016lx", info.hash));
  }
}

std::shared_ptr<const TokenSequence> open_shards(const std::string& folder) {
  const ShardIndex index = read_shard_index(folder);
  if (!index.complete)
    refuse_file(path_in(folder, "index.json"), "preparation was not finished",
                std::to_string(index.shards.size()) + " shards", "a complete folder (run data prepare again)");
  return std::make_shared<MappedTokens>(folder);
}

}  // namespace ranklab
