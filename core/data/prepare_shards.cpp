#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "core/base/checksum.h"
#include "core/base/counted.h"
#include "core/base/error.h"
#include "core/base/files/atomic_file.h"
#include "core/base/files/folder_lock.h"
#include "core/base/files/input_file.h"
#include "core/base/files/output_file.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/data/shard_file.h"
#include "core/data/shard_format.h"
#include "core/data/token_input.h"
#include "core/data/token_shard.h"
#include "core/data/tokenizer/tokenizer.h"

namespace ranklab {
namespace {

using namespace shards;
namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// The file appears complete or not at all, also after a power failure.
void write_durably(const std::string& path, std::initializer_list<std::string_view> parts) {
  AtomicFile file(
      path,
      {.where = "data", .what = "cannot write the shards", .fix = "check the path, its permissions and the free space"},
      {.durable = true});
  for (const std::string_view part : parts) file.write(part);
  file.commit();
}

// In the form in which the index contains them: a path may contain arbitrary bytes, JSON may not.
std::vector<ShardInput> in_utf8(std::vector<ShardInput> inputs) {
  for (ShardInput& input : inputs) input.path = shown_as_utf8(input.path);
  return inputs;
}

void write_index(const std::string& folder, const ShardIndex& index) {
  Json json = {{"format", "ranklab-token-shards"},
               {"version", index.version},
               {"dtype", index.width == TokenWidth::kUint16 ? "uint16" : "uint32"},
               {"vocab_size", index.vocab_size},
               {"shard_tokens", index.shard_tokens},
               {"complete", index.complete},
               {"from", index.format.from},
               {"json_key", index.format.json_key},
               {"inputs", Json::array()},
               {"shards", Json::array()}};
  if (!index.format.tokenizer.empty()) json["tokenizer"] = index.format.tokenizer;
  if (index.format.end_token) json["eod_token"] = *index.format.end_token;
  for (const ShardInput& input : in_utf8(index.inputs))
    json["inputs"].push_back(
        {{"path", input.path}, {"bytes", input.bytes}, {"hash", input.hash}, {"tokens", input.tokens}});
  for (const ShardInfo& shard : index.shards)
    json["shards"].push_back({{"file", shard.name}, {"tokens", shard.tokens}, {"hash", shard.hash}});
  json[kIndexHash] = index_hash(json.dump(kIndexIndent));
  write_durably(path_in(folder, "index.json"), {json.dump(kIndexIndent) + "\n"});
}

ShardInput identify(const std::string& path) {
  InputFile in(path, {.where = "data", .fix = "pass readable files"});
  ShardInput input{.path = fs::absolute(path).lexically_normal().string(), .hash = kFnvBasis};
  std::vector<char> buffer(1 << 20);
  while (const size_t got = in.read_some(buffer)) {
    input.hash = fnv1a(input.hash, {buffer.data(), got});
    input.bytes += got;
  }
  return input;
}

// The tokens of all inputs as one stream.
class InputStream {
 public:
  InputStream(const ShardIndex& index, Tokenizer* tokenizer, uint64_t skip) : index_(index), tokenizer_(tokenizer) {
    while (next_ < index_.inputs.size() && skip >= tokens_of(next_)) skip -= tokens_of(next_++);
    if (skip == 0) return;
    open();
    input_->skip(skip);
  }
  void take(std::span<uint32_t> out) {
    while (!out.empty()) {
      if (!input_) open();
      const size_t got = input_->read(out);
      out = out.subspan(got);
      if (!out.empty()) input_.reset();
    }
  }

 private:
  uint64_t tokens_of(size_t input) const { return static_cast<uint64_t>(index_.inputs[input].tokens); }
  void open() {
    RANKLAB_CHECK(next_ < index_.inputs.size(), ErrorKind::kIo, .where = "data",
                  .what = "an input became shorter while it was read", .fix = "run ranklab data prepare again");
    input_ = open_token_input(index_.inputs[next_++].path, index_.format, tokenizer_);
  }
  const ShardIndex& index_;
  Tokenizer* tokenizer_;
  size_t next_ = 0;
  std::unique_ptr<TokenInput> input_;
};

std::string shard_file(size_t number) { return strprintf("shard_%05zu.bin", number); }

// Checked before hours of work: files with the shards' names must not be inputs, but only shards of a killed run. The
// first `made` files are those in the index.
void check_outputs(const std::string& folder, const std::vector<std::string>& inputs, size_t first, size_t end,
                   size_t made, bool force) {
  for (size_t number = first; number < end; ++number) {
    const std::string path = path_in(folder, shard_file(number));
    check_output({.path = path,
                  .option = "--out",
                  .inputs = inputs,
                  .own = [&] { return number < made || begins_with(path, std::string(kMagic.begin(), kMagic.end())); },
                  .force = force});
  }
}

void check_tokenizer_output(const std::string& path, const std::vector<std::string>& inputs, const Tokenizer& tokenizer,
                            bool force) {
  check_output({.path = path,
                .option = "--out",
                .inputs = inputs,
                .own = [&] { return begins_with(path, tokenizer.json()); },
                .force = force});
}

// The next `count` tokens, in the form in which a file contains them.
std::string payload_of(InputStream& input, uint64_t count, size_t width) {
  std::vector<uint32_t> tokens(std::min<uint64_t>(count, kBlockTokens));
  std::string payload(count * width, '\0');
  for (uint64_t done = 0; done < count; done += tokens.size()) {
    tokens.resize(std::min<uint64_t>(count - done, tokens.size()));
    input.take(tokens);
    char* to = payload.data() + done * width;
    for (size_t i = 0; i < tokens.size(); ++i) std::memcpy(to + i * width, &tokens[i], width);
  }
  return payload;
}

ShardInfo write_shard(const std::string& folder, const ShardIndex& index, const std::string& payload) {
  const auto width = static_cast<size_t>(index.width);
  std::vector<uint64_t> hashes;
  const std::span<const std::byte> all = std::as_bytes(std::span(payload));
  for (size_t begin = 0; begin < all.size(); begin += kChunkBytes)
    hashes.push_back(xxh3(all.subspan(begin, std::min<size_t>(kChunkBytes, all.size() - begin))));
  const std::span<const std::byte> table = std::as_bytes(std::span(hashes));
  const size_t tokens = payload.size() / width;
  ShardInfo info{.name = shard_file(index.shards.size()), .tokens = static_cast<int64_t>(tokens), .hash = xxh3(table)};
  Header header{.width = static_cast<uint32_t>(width),
                .tokens = tokens,
                .vocab_size = static_cast<uint64_t>(index.vocab_size),
                .hash = info.hash,
                .chunk_bytes = kChunkBytes};
  header.header_hash = header_hash(header);
  write_durably(path_in(folder, info.name), {{reinterpret_cast<const char*>(&header), sizeof header},
                                             payload,
                                             {reinterpret_cast<const char*>(table.data()), table.size()}});
  return info;
}

bool is_sound(const std::string& folder, const ShardIndex& index, size_t number,
              const std::shared_ptr<OpenFiles>& files) {
  try {
    ShardFile(folder, index, number, files).verify();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kBadFile && error.kind() != ErrorKind::kIo) throw;
    log_warning("written again, with all shards after it: " + error.text().what + ", " + error.text().got);
    return false;
  }
  return true;
}

// Reuses the shards that an earlier run with the same inputs and settings left, up to the first one that is damaged or
// missing. RETURNS: the number of shards that the earlier run had made.
size_t adopt_earlier(const std::string& folder, ShardIndex& index) {
  if (!fs::exists(path_in(folder, "index.json"))) return 0;
  const ShardIndex earlier = read_shard_index(folder);
  RANKLAB_CHECK(earlier.inputs == in_utf8(index.inputs) && earlier.width == index.width &&
                    earlier.shard_tokens == index.shard_tokens && earlier.format == index.format,
                ErrorKind::kInvalidArgument, .where = "data",
                .what = quote(folder) + " holds shards of other inputs or settings",
                .got = counted(static_cast<int64_t>(earlier.shards.size()), "shard"),
                .want = "an empty folder, or the same work", .fix = "pass another --out, or remove the folder");
  const auto files = std::make_shared<OpenFiles>();
  size_t sound = 0;
  while (sound < earlier.shards.size() && is_sound(folder, earlier, sound, files)) ++sound;
  const bool is_whole = earlier.complete && sound == earlier.shards.size();
  RANKLAB_CHECK(is_whole || earlier.version == kVersion, ErrorKind::kInvalidArgument, .where = "data",
                .what = quote(folder) + " was begun by an earlier version and is not continued",
                .got = "version " + std::to_string(earlier.version), .want = "version " + std::to_string(kVersion),
                .fix = "pass another --out, or remove the folder");
  index.version = earlier.version;
  index.shards.assign(earlier.shards.begin(), earlier.shards.begin() + static_cast<std::ptrdiff_t>(sound));
  return earlier.shards.size();
}

// Reads every input before anything is written. RETURNS: the total number of tokens.
uint64_t identify_inputs(const std::vector<std::string>& files, Tokenizer* tokenizer, ShardIndex& index) {
  int64_t total = 0;
  for (const std::string& file : files) {
    const ScannedInput scanned = scan_input(file, index.format, tokenizer);  // first, because it stops at errors
    ShardInput input = identify(file);
    const uint64_t end = uint64_t{1} << (8 * static_cast<unsigned>(index.width));
    RANKLAB_CHECK(scanned.largest < end, ErrorKind::kInvalidArgument, .where = "data",
                  .what = quote(file) + ": a token is too large for --dtype", .got = std::to_string(scanned.largest),
                  .want = "below " + std::to_string(end), .fix = "pass --dtype uint32");
    RANKLAB_CHECK(tokenizer == nullptr || scanned.largest < tokenizer->vocab_size(), ErrorKind::kInvalidArgument,
                  .where = "--tokenizer", .what = quote(file) + ": a token is outside the tokenizer's vocabulary",
                  .got = std::to_string(scanned.largest), .want = "below " + std::to_string(tokenizer->vocab_size()),
                  .fix = "pass the tokenizer that made the file, or none");
    input.tokens = static_cast<int64_t>(scanned.tokens);
    total += input.tokens;
    index.vocab_size = std::max(index.vocab_size, int64_t{scanned.largest} + 1);
    index.inputs.push_back(std::move(input));
  }
  RANKLAB_CHECK(total > 0, ErrorKind::kBadFile, .where = "data", .what = "the inputs are empty", .got = "0 tokens",
                .want = "text, or tokens", .fix = "pass other files");
  return static_cast<uint64_t>(total);
}

}  // namespace

PrepareResult prepare_shards(const std::vector<std::string>& inputs, const std::string& folder,
                             const PrepareOptions& options) {
  RANKLAB_CHECK(options.shard_tokens > 0, ErrorKind::kInvalidArgument, .where = "data",
                .what = "--shard-tokens must be positive", .got = std::to_string(options.shard_tokens),
                .fix = "leave it out for the default");
  PrepareResult result;
  ShardIndex& index = result.index;
  index.width = options.width;
  index.shard_tokens = options.shard_tokens;
  index.format = options.format;
  if (options.format.from != InputFormat{}.from) index.vocab_size = 1;  // byte inputs keep all 256 tokens
  if (options.tokenizer != nullptr) {
    index.format.tokenizer = options.tokenizer->hash();
    index.vocab_size = std::max(index.vocab_size, options.tokenizer->vocab_size());
  }
  std::vector<std::string> files;
  for (const std::string& input : inputs) files.push_back(tokens_file(input, options.format));
  const uint64_t total = identify_inputs(files, options.tokenizer, index);
  std::error_code error;
  fs::create_directories(folder, error);
  RANKLAB_CHECK(!error && fs::is_directory(folder), ErrorKind::kIo, .where = "data",
                .what = "cannot create folder " + quote(folder), .got = error ? error.message() : "a file of that name",
                .fix = "pass another folder to --out");
  const FolderLock lock(folder, "data", "--out");
  const size_t made = adopt_earlier(folder, index);
  result.resumed_shards = index.shards.size();
  auto done = static_cast<uint64_t>(index.tokens());
  const auto shard_tokens = static_cast<uint64_t>(options.shard_tokens);
  const std::string tokenizer_path = path_in(folder, kTokenizerFile);
  if (options.tokenizer != nullptr) check_tokenizer_output(tokenizer_path, files, *options.tokenizer, options.force);
  check_outputs(folder, files, index.shards.size(), (total + shard_tokens - 1) / shard_tokens, made, options.force);
  if (options.tokenizer != nullptr) write_durably(tokenizer_path, {options.tokenizer->json()});
  InputStream input(index, options.tokenizer, done);
  while (done < total) {
    const uint64_t count = std::min<uint64_t>(total - done, shard_tokens);
    index.shards.push_back(write_shard(folder, index, payload_of(input, count, static_cast<size_t>(index.width))));
    done += count;
    index.complete = done == total;
    write_index(folder, index);
    if (options.progress) options.progress(static_cast<int64_t>(done), static_cast<int64_t>(total));
  }
  index.complete = true;
  return result;
}

}  // namespace ranklab
