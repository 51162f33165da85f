// Checksums of a safetensors file, stored in its own __metadata__, which other programs ignore: XXH3 of each chunk of
// each tensor ("ranklab.xxh3.NAME": 16 digits per chunk), the chunk size ("ranklab.chunk_bytes"), and XXH3 of the
// header's JSON, in which the digits of this value itself count as zeros ("ranklab.header_xxh3"). The header's hash
// covers the chunks' hashes, so it identifies the whole file: a manifest that records it detects a swapped file. A file
// has all of these or none. Cost: 16 bytes of header for each chunk. Thread rule: pure; plain data.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/checkpoint/safetensors_header.h"

namespace ranklab {

inline constexpr std::string_view kReservedMetadata = "ranklab.";  // these keys begin with it, and no other keys may

struct Checksums {
  uint64_t chunk_bytes = 0;
  uint64_t header = 0;
  std::map<std::string, std::vector<uint64_t>> chunks = {};  // by tensor name
};

// The number of chunks in this many bytes.
uint64_t chunk_count(uint64_t bytes, uint64_t chunk_bytes);

// Adds the checksums as metadata, with zeros in place of the header's hash.
void add_checksums(const Checksums& checksums, std::map<std::string, std::string>& metadata);
// Writes the header's hash over the zeros, and returns it.
uint64_t seal_header(std::string& json);

// Removes the keys from header.metadata. Returns nothing when the file has none. Throws kBadFile when one is missing or
// malformed, or when the header's hash does not match.
std::optional<Checksums> take_checksums(std::string_view json, SafetensorsHeader& header, const std::string& path);

}  // namespace ranklab
