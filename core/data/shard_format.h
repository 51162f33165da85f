// The bytes of a token shard, and the files they lie in: what reader and writer share.
// Thread rule: a mapped shard is immutable.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/data/token_shard.h"

namespace ranklab::shards {

static_assert(std::endian::native == std::endian::little, "shards are mapped as they lie in the file");

inline constexpr std::array<char, 8> kMagic = {'R', 'L', 'T', 'O', 'K', 'E', 'N', '\n'};
inline constexpr uint32_t kVersion = 1;

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

// FNV-1a over the bytes, from an earlier hash or the basis.
inline constexpr uint64_t kFnvBasis = 0xcbf29ce484222325u;
uint64_t fnv1a(uint64_t hash, std::string_view bytes);

std::string path_in(const std::string& folder, const std::string& name);
// kBadFile and kIo, naming the file.
[[noreturn]] void refuse_file(const std::string& path, std::string what, std::string got, std::string want);
[[noreturn]] void refuse_io(const std::string& verb, const std::string& path);

// One shard's pages, checked against the index.
class MappedShard {
 public:
  MappedShard(const std::string& folder, const ShardInfo& info, const ShardIndex& index);
  MappedShard(const MappedShard&) = delete;
  MappedShard& operator=(const MappedShard&) = delete;
  ~MappedShard();

  std::string_view payload() const { return bytes_.substr(sizeof(Header)); }
  const std::string& path() const { return path_; }

 private:
  void check(const ShardInfo& info, const ShardIndex& index) const;
  std::string path_;
  std::string_view bytes_;
};

}  // namespace ranklab::shards
