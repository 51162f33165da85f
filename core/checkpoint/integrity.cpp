#include "core/checkpoint/integrity.h"

#include <charconv>

#include "core/base/checksum.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/checkpoint/read_only_file.h"

namespace ranklab {
namespace {

constexpr size_t kDigits = 16;
const std::string kHeaderKey = "ranklab.header_xxh3", kChunkKey = "ranklab.chunk_bytes", kTensorKeys = "ranklab.xxh3.";
constexpr const char* kWant =
    "the checksums that ranklab wrote (another program that rewrites the file must drop them)";

// The position of the header hash's digits. A quotation mark inside a string is escaped, so a match is a key.
size_t digits_in(std::string_view json) {
  const std::string found = "\"" + kHeaderKey + "\":\"";
  const size_t at = json.find(found);
  if (at == std::string_view::npos || at + found.size() + kDigits > json.size()) return std::string_view::npos;
  return at + found.size();
}

uint64_t hash_of_header(std::string_view json, size_t digits) {
  Xxh3 hash;
  hash.add(json.substr(0, digits));
  hash.add(std::string(kDigits, '0'));
  hash.add(json.substr(digits + kDigits));
  return hash.value();
}

std::string take(std::map<std::string, std::string>& metadata, const std::string& key, const std::string& path) {
  const auto found = metadata.find(key);
  if (found == metadata.end())
    refuse_checkpoint_file(path, "a checksum is missing", "no " + quote(printable(key)), kWant);
  std::string value = std::move(found->second);
  metadata.erase(found);
  return value;
}

void check_header_hash(std::string_view json, const std::string& text, const std::string& path) {
  const size_t digits = digits_in(json);
  uint64_t want = 0;
  if (digits == std::string_view::npos || json.substr(digits, kDigits) != text || !parse_xxh3_text(text, want))
    refuse_checkpoint_file(path, "the header's checksum is damaged", quote(printable(text)), kWant);
  if (const uint64_t got = hash_of_header(json, digits); got != want)
    refuse_checkpoint_file(path, "the header is damaged", "xxh3 " + xxh3_text(got), "xxh3 " + xxh3_text(want));
}

std::vector<uint64_t> chunk_hashes(std::string_view text, const TensorEntry& tensor, uint64_t chunk_bytes,
                                   const std::string& path) {
  const uint64_t count = chunk_count(tensor.size_bytes(), chunk_bytes);
  std::vector<uint64_t> hashes;
  bool good = text.size() % kDigits == 0 && text.size() / kDigits == count;
  for (size_t i = 0; good && i < text.size(); i += kDigits) {
    hashes.push_back(0);
    good = parse_xxh3_text(text.substr(i, kDigits), hashes.back());
  }
  if (!good)
    refuse_checkpoint_file(path, "tensor " + quote(tensor.name) + ": its checksums are damaged", quote(printable(text)),
                           std::to_string(count) + " times 16 digits");
  return hashes;
}

}  // namespace

uint64_t chunk_count(uint64_t bytes, uint64_t chunk_bytes) {
  return bytes / chunk_bytes + (bytes % chunk_bytes != 0 ? 1 : 0);
}

void add_checksums(const Checksums& checksums, std::map<std::string, std::string>& metadata) {
  metadata[kChunkKey] = std::to_string(checksums.chunk_bytes);
  metadata[kHeaderKey] = std::string(kDigits, '0');
  for (const auto& [tensor, hashes] : checksums.chunks) {
    std::string& text = metadata[kTensorKeys + tensor];
    for (const uint64_t hash : hashes) text += xxh3_text(hash);
  }
}

uint64_t seal_header(std::string& json) {
  const size_t digits = digits_in(json);
  RANKLAB_CHECK(digits != std::string::npos, ErrorKind::kInternal, .where = "checkpoint",
                .what = "the header has no place for its checksum", .got = printable(json));
  const uint64_t hash = hash_of_header(json, digits);
  json.replace(digits, kDigits, xxh3_text(hash));
  return hash;
}

std::optional<Checksums> take_checksums(std::string_view json, SafetensorsHeader& header, const std::string& path) {
  const auto first = header.metadata.lower_bound(std::string(kReservedMetadata));
  if (first == header.metadata.end() || !first->first.starts_with(kReservedMetadata)) return std::nullopt;
  Checksums checksums;
  const std::string header_text = take(header.metadata, kHeaderKey, path);
  check_header_hash(json, header_text, path);
  parse_xxh3_text(header_text, checksums.header);
  const std::string chunk_text = take(header.metadata, kChunkKey, path);
  const auto [end, error] =
      std::from_chars(chunk_text.data(), chunk_text.data() + chunk_text.size(), checksums.chunk_bytes);
  if (error != std::errc() || end != chunk_text.data() + chunk_text.size() || checksums.chunk_bytes == 0)
    refuse_checkpoint_file(path, "the chunks have no size", quote(printable(chunk_text)), "a number of bytes");
  for (const TensorEntry& tensor : header.tensors) {
    const std::string text = take(header.metadata, kTensorKeys + tensor.name, path);
    checksums.chunks[tensor.name] = chunk_hashes(text, tensor, checksums.chunk_bytes, path);
  }
  const auto left = header.metadata.lower_bound(std::string(kReservedMetadata));
  if (left != header.metadata.end() && left->first.starts_with(kReservedMetadata))
    refuse_checkpoint_file(path, "a checksum of a tensor that is not in the file", quote(printable(left->first)),
                           kWant);
  return checksums;
}

}  // namespace ranklab
