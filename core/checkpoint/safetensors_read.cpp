#include <algorithm>
#include <array>

#include "core/base/checksum.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/checkpoint/safetensors.h"

namespace ranklab {
namespace {

constexpr uint64_t kLengthBytes = 8;

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path) : file_(path) { read_header(); }

void SafetensorsFile::read_header() {
  if (file_bytes() < kLengthBytes)
    refuse_checkpoint_file(path(), "the file is cut off", std::to_string(file_bytes()) + " bytes",
                           "a header, which begins with 8 bytes of length");
  std::array<std::byte, kLengthBytes> raw;
  file_.read(0, raw);
  uint64_t length = 0;
  for (size_t i = kLengthBytes; i-- > 0;) length = length << 8 | static_cast<uint64_t>(raw[i]);
  if (length > kMostHeaderBytes)
    refuse_checkpoint_file(path(), "the header is too long, or this is not a safetensors file",
                           std::to_string(length) + " bytes", "at most " + std::to_string(kMostHeaderBytes));
  if (length > file_bytes() - kLengthBytes)
    refuse_checkpoint_file(path(), "the file is cut off in its header",
                           std::to_string(file_bytes() - kLengthBytes) + " bytes", std::to_string(length) + " bytes");
  data_begin_ = kLengthBytes + length;
  std::string json(length, '\0');
  file_.read(kLengthBytes, std::as_writable_bytes(std::span(json)));
  header_ = parse_safetensors_header(json, file_bytes() - data_begin_, path());
  checksums_ = take_checksums(json, header_, path());
}

const TensorEntry* SafetensorsFile::find(const std::string& name) const {
  const auto found = std::ranges::lower_bound(tensors(), name, {}, &TensorEntry::name);
  return found != tensors().end() && found->name == name ? &*found : nullptr;
}

const TensorEntry& SafetensorsFile::tensor(const std::string& name) const {
  const TensorEntry* found = find(name);
  if (found != nullptr) return *found;
  std::vector<std::string> names;
  for (const TensorEntry& entry : tensors()) names.push_back(entry.name);
  const std::string nearest = nearest_name(name, names);
  refuse_checkpoint_file(path(), "there is no tensor " + quote(name), std::to_string(names.size()) + " others",
                         nearest.empty() ? "that one" : "perhaps " + quote(nearest));
}

DamagedChunk SafetensorsFile::hash_chunk(const TensorEntry& tensor, uint64_t index,
                                         std::span<const std::byte> bytes) const {
  const uint64_t begin = index * checksums_->chunk_bytes;
  return {.tensor = tensor.name,
          .begin = begin,
          .end = begin + bytes.size(),
          .file_offset = data_begin_ + tensor.begin + begin,
          .got = xxh3(bytes),
          .want = checksums_->chunks.at(tensor.name)[index]};
}

void SafetensorsFile::refuse(const DamagedChunk& chunk, const std::string& more) const {
  refuse_checkpoint_file(path(),
                         "tensor " + quote(chunk.tensor) + ": bytes " + std::to_string(chunk.begin) + " to " +
                             std::to_string(chunk.end) + " are damaged (file offset " +
                             std::to_string(chunk.file_offset) + ")" + more,
                         "xxh3 " + xxh3_text(chunk.got), "xxh3 " + xxh3_text(chunk.want));
}

void SafetensorsFile::read_chunk(const TensorEntry& tensor, uint64_t index, std::span<std::byte> out) const {
  file_.read(data_begin_ + tensor.begin + index * checksums_->chunk_bytes, out);
  const DamagedChunk chunk = hash_chunk(tensor, index, out);
  if (chunk.got != chunk.want) refuse(chunk, "");
}

void SafetensorsFile::read(const TensorEntry& tensor, uint64_t offset, std::span<std::byte> out) const {
  const uint64_t bytes = tensor.size_bytes();
  RANKLAB_CHECK(offset <= bytes && out.size() <= bytes - offset, ErrorKind::kInvalidArgument, .where = "checkpoint",
                .what = "bytes outside of tensor " + quote(tensor.name),
                .got = std::to_string(offset) + " and " + std::to_string(out.size()) + " more",
                .want = "within " + std::to_string(bytes));
  if (!checksums_) return file_.read(data_begin_ + tensor.begin + offset, out);
  std::vector<std::byte> whole;  // buffer for a chunk of which only a part is wanted
  while (!out.empty()) {
    const uint64_t index = offset / checksums_->chunk_bytes, begin = index * checksums_->chunk_bytes;
    const uint64_t chunk = std::min(checksums_->chunk_bytes, bytes - begin);
    const uint64_t take = std::min<uint64_t>(out.size(), begin + chunk - offset);
    if (take == chunk) {
      read_chunk(tensor, index, out.first(take));
    } else {
      whole.resize(chunk);
      read_chunk(tensor, index, whole);
      std::ranges::copy(std::span(whole).subspan(offset - begin, take), out.begin());
    }
    offset += take;
    out = out.subspan(take);
  }
}

std::vector<std::byte> SafetensorsFile::read(const TensorEntry& tensor) const {
  std::vector<std::byte> bytes(tensor.size_bytes());
  read(tensor, 0, bytes);
  return bytes;
}

std::vector<DamagedChunk> SafetensorsFile::damaged_chunks() const {
  std::vector<DamagedChunk> damaged;
  if (!checksums_) return damaged;
  std::vector<std::byte> buffer;
  for (const TensorEntry& tensor : tensors()) {
    for (uint64_t i = 0; i < chunk_count(tensor.size_bytes(), checksums_->chunk_bytes); ++i) {
      const uint64_t begin = i * checksums_->chunk_bytes;
      buffer.resize(std::min(checksums_->chunk_bytes, tensor.size_bytes() - begin));
      file_.read(data_begin_ + tensor.begin + begin, buffer);
      const DamagedChunk chunk = hash_chunk(tensor, i, buffer);
      if (chunk.got != chunk.want) damaged.push_back(chunk);
    }
  }
  return damaged;
}

void SafetensorsFile::verify() const {
  const std::vector<DamagedChunk> damaged = damaged_chunks();
  if (damaged.empty()) return;
  const size_t more = damaged.size() - 1;
  refuse(damaged[0], more == 0 ? "" : ", and " + std::to_string(more) + " chunks more");
}

}  // namespace ranklab
