// What makes a safetensors file prove itself, in its own __metadata__, which other programs skip: XXH3 of each chunk of
// each tensor ("ranklab.xxh3.NAME": 16 digits a chunk), the chunks' size ("ranklab.chunk_bytes"), and XXH3 of the
// header's JSON with this value's own digits taken as zeros ("ranklab.header_xxh3"). The header's hash covers the
// chunks' hashes, so it stands for the whole file: a manifest that keeps it knows a swapped file from the right one.
// A file has all of these or none. Cost: 16 bytes of header for each chunk. Thread rule: pure; plain data.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/checkpoint/safetensors_header.h"

namespace ranklab {

inline constexpr std::string_view kReservedMetadata = "ranklab.";  // how these keys begin, and no others may

struct Checksums {
  uint64_t chunk_bytes = 0;
  uint64_t header = 0;
  std::map<std::string, std::vector<uint64_t>> chunks = {};  // of each tensor
};

// How many chunks so many bytes are.
uint64_t chunk_count(uint64_t bytes, uint64_t chunk_bytes);

// `chunks` as metadata, with zeros for the header's hash.
void add_checksums(const Checksums& checksums, std::map<std::string, std::string>& metadata);
// Writes the header's hash over the zeros, and returns it.
uint64_t seal_header(std::string& json);

// Takes the keys out of header.metadata. Nothing when the file has none. Throws kBadFile when one is missing or broken,
// or the header's hash is not its own.
std::optional<Checksums> take_checksums(std::string_view json, SafetensorsHeader& header, const std::string& path);

}  // namespace ranklab
