#include "core/data/token_shard.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/base/error.h"
#include "core/base/json_integer.h"
#include "core/base/small_file.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little, "shards are mapped as they lie in the file");

constexpr std::array<char, 8> kMagic = {'R', 'L', 'T', 'O', 'K', 'E', 'N', '\n'};
constexpr uint32_t kVersion = 1;
constexpr uint64_t kFnvBasis = 0xcbf29ce484222325u;

struct Header {
  std::array<char, 8> magic = kMagic;
  uint32_t version = kVersion;
  uint32_t width = 0;
  uint64_t tokens = 0;
  uint64_t vocab_size = 0;
  uint64_t hash = 0;
  std::array<uint64_t, 3> reserved = {};
};
static_assert(sizeof(Header) == 64);

uint64_t fnv1a(uint64_t hash, std::string_view bytes) {
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

std::string path_in(const std::string& folder, const std::string& name) { return (fs::path(folder) / name).string(); }

[[noreturn]] void refuse_file(const std::string& path, std::string what, std::string got, std::string want) {
  throw Error(ErrorKind::kBadFile, {.where = "data",
                                    .what = quote(path) + ": " + std::move(what),
                                    .got = std::move(got),
                                    .want = std::move(want),
                                    .fix = "make the folder again with ranklab data prepare"});
}

[[noreturn]] void refuse_io(const std::string& verb, const std::string& path) {
  throw Error(ErrorKind::kIo, {.where = "data",
                               .what = "cannot " + verb + " " + quote(path),
                               .got = std::strerror(errno),
                               .fix = "check the path, its permissions and the free space"});
}

class FileDescriptor {
 public:
  FileDescriptor(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {
    if (fd_ < 0) refuse_io("open", path);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() { ::close(fd_); }
  int get() const { return fd_; }

 private:
  int fd_;
};

void write_all(int fd, const std::string& path, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) refuse_io("write", path);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

// A file is there completely or not at all, also after a power cut.
void write_durably(const std::string& path, std::initializer_list<std::string_view> parts) {
  const std::string temporary = path + ".part";
  {
    const FileDescriptor file(temporary, O_WRONLY | O_CREAT | O_TRUNC);
    for (const std::string_view part : parts) write_all(file.get(), temporary, part);
    if (::fsync(file.get()) != 0) refuse_io("write", temporary);
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) refuse_io("rename", temporary);
  const FileDescriptor folder(fs::path(path).parent_path().string(), O_RDONLY | O_DIRECTORY);
  if (::fsync(folder.get()) != 0) refuse_io("write", path);
}

void write_index(const std::string& folder, const ShardIndex& index) {
  Json json = {{"format", "ranklab-token-shards"},
               {"version", kVersion},
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
  write_durably(path_in(folder, "index.json"), {json.dump(2) + "\n"});
}

// One shard's pages, checked against the index.
class MappedShard {
 public:
  MappedShard(const std::string& folder, const ShardInfo& info, const ShardIndex& index)
      : path_(path_in(folder, info.name)) {
    const FileDescriptor file(path_, O_RDONLY);
    struct stat status {};
    if (::fstat(file.get(), &status) != 0) refuse_io("read", path_);
    const auto bytes = static_cast<size_t>(status.st_size);
    const auto width = static_cast<size_t>(index.width);
    const size_t want = sizeof(Header) + static_cast<size_t>(info.tokens) * width;
    if (bytes != want)
      refuse_file(path_, bytes < want ? "the shard is cut off" : "the shard is too long",
                  std::to_string(bytes) + " bytes", std::to_string(want) + " bytes");
    void* at = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.get(), 0);
    if (at == MAP_FAILED) refuse_io("map", path_);
    bytes_ = {static_cast<const char*>(at), bytes};
    try {
      check(info, index);
    } catch (...) {
      ::munmap(at, bytes);
      throw;
    }
  }
  MappedShard(const MappedShard&) = delete;
  MappedShard& operator=(const MappedShard&) = delete;
  ~MappedShard() { ::munmap(const_cast<char*>(bytes_.data()), bytes_.size()); }

  std::string_view payload() const { return bytes_.substr(sizeof(Header)); }
  const std::string& path() const { return path_; }

 private:
  void check(const ShardInfo& info, const ShardIndex& index) const {
    Header header;
    std::memcpy(&header, bytes_.data(), sizeof header);
    if (header.magic != kMagic) refuse_file(path_, "this is no token shard", "another first line", "RLTOKEN");
    const auto same = [this](const char* what, uint64_t got, uint64_t want) {
      if (got != want) refuse_file(path_, what, std::to_string(got), std::to_string(want));
    };
    same("unknown version", header.version, kVersion);
    same("the token width is not the index's", header.width, static_cast<uint64_t>(index.width));
    same("the token count is not the index's", header.tokens, static_cast<uint64_t>(info.tokens));
    same("the vocabulary size is not the index's", header.vocab_size, static_cast<uint64_t>(index.vocab_size));
    same("the hash in the header is not the index's", header.hash, info.hash);
  }
  std::string path_;
  std::string_view bytes_;
};

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

ShardInput identify(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in.good() || fs::is_directory(path)) {
    if (fs::is_directory(path)) errno = EISDIR;
    refuse_io("read", path);
  }
  ShardInput input{.path = fs::absolute(path).lexically_normal().string(), .hash = kFnvBasis};
  std::vector<char> buffer(1 << 20);
  while (in.read(buffer.data(), static_cast<std::streamsize>(buffer.size())), in.gcount() > 0) {
    input.hash = fnv1a(input.hash, {buffer.data(), static_cast<size_t>(in.gcount())});
    input.bytes += static_cast<uint64_t>(in.gcount());
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
      file_.seekg(static_cast<std::streamoff>(skip));
    }
  }
  std::string take(size_t count) {
    std::string bytes(count, '\0');
    for (size_t have = 0; have < count;) {
      if (!file_.is_open()) open();
      file_.read(bytes.data() + have, static_cast<std::streamsize>(count - have));
      have += static_cast<size_t>(file_.gcount());
      if (have < count) file_.close();
    }
    return bytes;
  }

 private:
  void open() {
    RANKLAB_CHECK(next_ < inputs_.size(), ErrorKind::kIo, .where = "data",
                  .what = "an input became shorter while it was read", .fix = "run ranklab data prepare again");
    file_ = std::ifstream(inputs_[next_].path, std::ios::binary);
    if (!file_.good()) refuse_io("read", inputs_[next_].path);
    ++next_;
  }
  const std::vector<ShardInput>& inputs_;
  size_t next_ = 0;
  std::ifstream file_;
};

ShardInfo write_shard(const std::string& folder, const ShardIndex& index, const std::string& bytes) {
  const auto width = static_cast<size_t>(index.width);
  std::string payload(bytes.size() * width, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) payload[i * width] = bytes[i];
  ShardInfo info{.name = strprintf("shard_%05zu.bin", index.shards.size()),
                 .tokens = static_cast<int64_t>(bytes.size()),
                 .hash = fnv1a(kFnvBasis, payload)};
  const Header header{.width = static_cast<uint32_t>(width),
                      .tokens = bytes.size(),
                      .vocab_size = static_cast<uint64_t>(index.vocab_size),
                      .hash = info.hash};
  write_durably(path_in(folder, info.name), {{reinterpret_cast<const char*>(&header), sizeof header}, payload});
  return info;
}

// Shards an earlier, unfinished run of the same work left.
void adopt_earlier(const std::string& folder, ShardIndex& index) {
  if (!fs::exists(path_in(folder, "index.json"))) return;
  const ShardIndex earlier = read_shard_index(folder);
  RANKLAB_CHECK(
      earlier.inputs == index.inputs && earlier.width == index.width && earlier.shard_tokens == index.shard_tokens,
      ErrorKind::kInvalidArgument, .where = "data", .what = quote(folder) + " holds shards of other inputs or settings",
      .got = std::to_string(earlier.shards.size()) + " shards", .want = "an empty folder, or the same work",
      .fix = "pass another --out, or remove the folder");
  for (const ShardInfo& info : earlier.shards) {
    const MappedShard shard(folder, info, earlier);
    if (fnv1a(kFnvBasis, shard.payload()) != info.hash)
      refuse_file(shard.path(), "the tokens are damaged", "another hash", std::to_string(info.hash));
  }
  index.shards = earlier.shards;
}

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
  const std::string text = read_small_file(path, kLimitBytes, ErrorKind::kIo, "data",
                                           "make the folder with ranklab data prepare, or check the path");
  try {
    return parse_index(path, Json::parse(text));
  } catch (const Json::exception& error) {
    refuse_file(path, "the index is damaged", error.what(), "the index that ranklab data prepare writes");
  } catch (const Error& error) {  // json_integer() does not know the file
    if (error.text().where != "JSON") throw;
    refuse_file(path, "the index is damaged: " + error.text().what, error.text().got, error.text().want);
  }
}

PrepareResult prepare_shards(const std::vector<std::string>& files, const std::string& folder,
                             const PrepareOptions& options) {
  RANKLAB_CHECK(options.shard_tokens > 0, ErrorKind::kInvalidArgument, .where = "data",
                .what = "--shard-tokens must be positive", .got = std::to_string(options.shard_tokens));
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
  InputStream input(index.inputs, done);
  while (done < total) {
    const uint64_t count = std::min<uint64_t>(total - done, static_cast<uint64_t>(options.shard_tokens));
    index.shards.push_back(write_shard(folder, index, input.take(count)));
    done += count;
    index.complete = done == total;
    write_index(folder, index);
    if (options.progress) options.progress(static_cast<int64_t>(done), static_cast<int64_t>(total));
  }
  index.complete = true;
  return result;
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
