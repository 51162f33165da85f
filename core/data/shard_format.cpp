#include "core/data/shard_format.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/input_file.h"
#include "core/base/text.h"

namespace ranklab::shards {

namespace fs = std::filesystem;

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

MappedShard::MappedShard(const std::string& folder, const ShardInfo& info, const ShardIndex& index)
    : path_(path_in(folder, info.name)) {
  const InputFile file(path_, {.where = "data", .fix = "check the path and its permissions"});
  const auto bytes = static_cast<size_t>(file.size_bytes());
  const auto width = static_cast<size_t>(index.width);
  const size_t want = sizeof(Header) + static_cast<size_t>(info.tokens) * width;
  if (bytes != want)
    refuse_file(path_, bytes < want ? "the shard is cut off" : "the shard is too long",
                std::to_string(bytes) + " bytes", std::to_string(want) + " bytes");
  void* at = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.descriptor(), 0);
  if (at == MAP_FAILED) refuse_io("map", path_);
  bytes_ = {static_cast<const char*>(at), bytes};
  try {
    check(info, index);
  } catch (...) {
    ::munmap(at, bytes);
    throw;
  }
}

MappedShard::~MappedShard() { ::munmap(const_cast<char*>(bytes_.data()), bytes_.size()); }

void MappedShard::check(const ShardInfo& info, const ShardIndex& index) const {
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

}  // namespace ranklab::shards
