// The byte format of a token shard, shared by reader and writer. Since version 2 a shard ends with one XXH3 per
// kChunkBytes of its tokens, so that a run checks data on first read, and the header carries its own.
// Version 1 has one FNV-1a over all tokens.
// Thread rule: pure functions.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/data/token_shard.h"

namespace ranklab::shards {

static_assert(std::endian::native == std::endian::little, "shards are read as they lie in the file");

inline constexpr std::array<char, 8> kMagic = {'R', 'L', 'T', 'O', 'K', 'E', 'N', '\n'};
inline constexpr uint32_t kVersion = 2;
inline constexpr uint64_t kChunkBytes = 1 << 16;  // payload bytes per checksum; the last chunk may be shorter

struct Header {
  std::array<char, 8> magic = kMagic;
  uint32_t version = kVersion;
  uint32_t width = 0;
  uint64_t tokens = 0;
  uint64_t vocab_size = 0;
  uint64_t hash = 0;  // version 1: FNV-1a of the payload; 2: XXH3 of the checksum table
  // Version 2 only, zero before.
  uint64_t chunk_bytes = 0;
  uint64_t header_hash = 0;  // XXH3 of this header with this field zero
  uint64_t reserved = 0;
};
static_assert(sizeof(Header) == 64);

uint64_t header_hash(Header header);
inline uint64_t chunks_of(uint64_t payload_bytes) { return (payload_bytes + kChunkBytes - 1) / kChunkBytes; }
// The size of the file, for tokens of this width.
uint64_t file_bytes(uint32_t version, uint64_t tokens, uint64_t width);

// The last key of index.json since version 2: XXH3 of the text before this key was added.
inline constexpr const char* kIndexHash = "xxh3";
inline constexpr int kIndexIndent = 2;
std::string index_hash(std::string_view text);

// FNV-1a of the bytes, continuing from an earlier hash or starting with the basis.
inline constexpr uint64_t kFnvBasis = 0xcbf29ce484222325u;
uint64_t fnv1a(uint64_t hash, std::string_view bytes);

std::string path_in(const std::string& folder, const std::string& name);
// Throws kBadFile, naming the file.
[[noreturn]] void refuse_file(const std::string& path, std::string what, std::string got, std::string want);

}  // namespace ranklab::shards
