#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>

#include "core/base/atomic_file.h"
#include "core/base/checksum.h"
#include "core/base/error.h"
#include "core/base/input_file.h"
#include "core/base/output_file.h"
#include "core/base/text.h"
#include "core/data/shard_file.h"
#include "core/data/shard_format.h"
#include "core/data/token_shard.h"

namespace ranklab {
namespace {

using namespace shards;
namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

const InputWords kInputWords = {.where = "data", .fix = "pass readable text files"};

// The file appears complete or not at all, also after a power failure.
void write_durably(const std::string& path, std::initializer_list<std::string_view> parts) {
  AtomicFile file(
      path,
      {.where = "data", .what = "cannot write the shards", .fix = "check the path, its permissions and the free space"},
      {.durable = true});
  for (const std::string_view part : parts) file.write(part);
  file.commit();
}

void write_index(const std::string& folder, const ShardIndex& index) {
  Json json = {{"format", "ranklab-token-shards"},
               {"version", index.version},
               {"dtype", index.width == TokenWidth::kUint16 ? "uint16" : "uint32"},
               {"vocab_size", index.vocab_size},
               {"shard_tokens", index.shard_tokens},
               {"complete", index.complete},
               {"inputs", Json::array()},
               {"shards", Json::array()}};
  for (const ShardInput& input : index.inputs)
    json["inputs"].push_back({{"path", input.path}, {"bytes", input.bytes}, {"hash", input.hash}});
  for (const ShardInfo& shard : index.shards)
    json["shards"].push_back({{"file", shard.name}, {"tokens", shard.tokens}, {"hash", shard.hash}});
  json[kIndexHash] = index_hash(json.dump(kIndexIndent));
  write_durably(path_in(folder, "index.json"), {json.dump(kIndexIndent) + "\n"});
}

ShardInput identify(const std::string& path) {
  InputFile in(path, kInputWords);
  ShardInput input{.path = fs::absolute(path).lexically_normal().string(), .hash = kFnvBasis};
  std::vector<char> buffer(1 << 20);
  while (const size_t got = in.read_some(buffer)) {
    input.hash = fnv1a(input.hash, {buffer.data(), got});
    input.bytes += got;
  }
  return input;
}

// The bytes of all inputs as one stream.
class InputStream {
 public:
  InputStream(const std::vector<ShardInput>& inputs, uint64_t skip) : inputs_(inputs) {
    while (next_ < inputs_.size() && skip >= inputs_[next_].bytes) skip -= inputs_[next_++].bytes;
    if (skip > 0) {
      open();
      position_ = skip;
    }
  }
  std::string take(size_t count) {
    std::string bytes(count, '\0');
    for (size_t have = 0; have < count;) {
      if (!file_) open();
      const size_t got = file_->read_at(position_, std::span(bytes).subspan(have));
      position_ += got;
      have += got;
      if (have < count) file_.reset();
    }
    return bytes;
  }

 private:
  void open() {
    RANKLAB_CHECK(next_ < inputs_.size(), ErrorKind::kIo, .where = "data",
                  .what = "an input became shorter while it was read", .fix = "run ranklab data prepare again");
    file_.emplace(inputs_[next_++].path, kInputWords);
    position_ = 0;
  }
  const std::vector<ShardInput>& inputs_;
  size_t next_ = 0;
  std::optional<InputFile> file_;
  uint64_t position_ = 0;  // offset in the open file
};

std::string shard_file(size_t number) { return strprintf("shard_%05zu.bin", number); }

// Checked before hours of work: files with the shards' names must not be inputs, only shards of a killed run.
void check_outputs(const std::string& folder, const std::vector<std::string>& inputs, size_t first, size_t end,
                   bool force) {
  for (size_t number = first; number < end; ++number) {
    const std::string path = path_in(folder, shard_file(number));
    check_output({.path = path,
                  .option = "--out",
                  .inputs = inputs,
                  .own = [&] { return begins_with(path, std::string(kMagic.begin(), kMagic.end())); },
                  .force = force});
  }
}

ShardInfo write_shard(const std::string& folder, const ShardIndex& index, const std::string& bytes) {
  const auto width = static_cast<size_t>(index.width);
  std::string payload(bytes.size() * width, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) payload[i * width] = bytes[i];
  std::vector<uint64_t> hashes;
  const std::span<const std::byte> all = std::as_bytes(std::span(payload));
  for (size_t begin = 0; begin < all.size(); begin += kChunkBytes)
    hashes.push_back(xxh3(all.subspan(begin, std::min<size_t>(kChunkBytes, all.size() - begin))));
  const std::span<const std::byte> table = std::as_bytes(std::span(hashes));
  ShardInfo info{
      .name = shard_file(index.shards.size()), .tokens = static_cast<int64_t>(bytes.size()), .hash = xxh3(table)};
  Header header{.width = static_cast<uint32_t>(width),
                .tokens = bytes.size(),
                .vocab_size = static_cast<uint64_t>(index.vocab_size),
                .hash = info.hash,
                .chunk_bytes = kChunkBytes};
  header.header_hash = header_hash(header);
  write_durably(path_in(folder, info.name), {{reinterpret_cast<const char*>(&header), sizeof header},
                                             payload,
                                             {reinterpret_cast<const char*>(table.data()), table.size()}});
  return info;
}

// Reuses shards that an earlier, unfinished run with the same inputs and settings left.
void adopt_earlier(const std::string& folder, ShardIndex& index) {
  if (!fs::exists(path_in(folder, "index.json"))) return;
  const ShardIndex earlier = read_shard_index(folder);
  RANKLAB_CHECK(
      earlier.inputs == index.inputs && earlier.width == index.width && earlier.shard_tokens == index.shard_tokens,
      ErrorKind::kInvalidArgument, .where = "data", .what = quote(folder) + " holds shards of other inputs or settings",
      .got = std::to_string(earlier.shards.size()) + " shards", .want = "an empty folder, or the same work",
      .fix = "pass another --out, or remove the folder");
  RANKLAB_CHECK(earlier.complete || earlier.version == kVersion, ErrorKind::kInvalidArgument, .where = "data",
                .what = quote(folder) + " was begun by an earlier version and is not continued",
                .got = "version " + std::to_string(earlier.version), .want = "version " + std::to_string(kVersion),
                .fix = "pass another --out, or remove the folder");
  const auto files = std::make_shared<OpenFiles>();
  for (size_t i = 0; i < earlier.shards.size(); ++i) ShardFile(folder, earlier, i, files).verify();
  index.version = earlier.version;
  index.shards = earlier.shards;
}

}  // namespace

PrepareResult prepare_shards(const std::vector<std::string>& files, const std::string& folder,
                             const PrepareOptions& options) {
  RANKLAB_CHECK(options.shard_tokens > 0, ErrorKind::kInvalidArgument, .where = "data",
                .what = "--shard-tokens must be positive", .got = std::to_string(options.shard_tokens),
                .fix = "leave it out for the default");
  PrepareResult result;
  ShardIndex& index = result.index;
  index.width = options.width;
  index.shard_tokens = options.shard_tokens;
  uint64_t total = 0;
  for (const std::string& file : files) {
    index.inputs.push_back(identify(file));
    total += index.inputs.back().bytes;
  }
  RANKLAB_CHECK(total > 0, ErrorKind::kBadFile, .where = "data", .what = "the inputs are empty", .got = "0 bytes",
                .want = "text", .fix = "pass other files");
  std::error_code error;
  fs::create_directories(folder, error);
  RANKLAB_CHECK(!error && fs::is_directory(folder), ErrorKind::kIo, .where = "data",
                .what = "cannot create folder " + quote(folder), .got = error ? error.message() : "a file of that name",
                .fix = "pass another folder to --out");
  adopt_earlier(folder, index);
  result.resumed_shards = index.shards.size();
  auto done = static_cast<uint64_t>(index.tokens());
  const auto shard_tokens = static_cast<uint64_t>(options.shard_tokens);
  check_outputs(folder, files, index.shards.size(), (total + shard_tokens - 1) / shard_tokens, options.force);
  InputStream input(index.inputs, done);
  while (done < total) {
    const uint64_t count = std::min<uint64_t>(total - done, shard_tokens);
    index.shards.push_back(write_shard(folder, index, input.take(count)));
    done += count;
    index.complete = done == total;
    write_index(folder, index);
    if (options.progress) options.progress(static_cast<int64_t>(done), static_cast<int64_t>(total));
  }
  index.complete = true;
  return result;
}

}  // namespace ranklab
