#include "core/data/shard_format.h"

#include <filesystem>
#include <span>

#include "core/base/checksum.h"
#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab::shards {

namespace fs = std::filesystem;

uint64_t header_hash(Header header) {
  header.header_hash = 0;
  return xxh3(std::as_bytes(std::span(&header, 1)));
}

uint64_t file_bytes(uint32_t version, uint64_t tokens, uint64_t width) {
  const uint64_t payload = tokens * width;
  return sizeof(Header) + payload + (version == 1 ? 0 : chunks_of(payload) * sizeof(uint64_t));
}

std::string index_hash(std::string_view text) { return xxh3_text(xxh3(std::as_bytes(std::span(text)))); }

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
                                    .fix = "remove the file, then run the same ranklab data prepare again"});
}

}  // namespace ranklab::shards
