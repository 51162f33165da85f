#include "core/checkpoint/safetensors_stream.h"

#include <algorithm>
#include <utility>

#include "core/base/checksum.h"
#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

uint64_t checked_bytes(const TensorEntry& tensor) {
  const std::string fault = fault_of_tensor_name(tensor.name);
  RANKLAB_CHECK(fault.empty(), ErrorKind::kInvalidArgument, .where = "checkpoint", .what = "a tensor's name " + fault,
                .got = quote(printable(tensor.name)), .want = "printable UTF-8");
  uint64_t bytes = 0;
  RANKLAB_CHECK(tensor_bytes(tensor.shape, tensor.type, bytes), ErrorKind::kInvalidArgument, .where = "checkpoint",
                .what = "tensor " + quote(tensor.name) + " is too large",
                .got = std::string(name(tensor.type)) + " " + shape_text(tensor.shape), .want = "less than 2^64 bytes");
  return bytes;
}

void check_metadata(const SafetensorsWriteOptions& options) {
  for (const auto& [key, value] : options.metadata) {
    RANKLAB_CHECK(!key.starts_with(kReservedMetadata), ErrorKind::kInvalidArgument, .where = "checkpoint",
                  .what = "metadata under a name that the checksums have", .got = quote(printable(key)),
                  .want = "a name that does not begin with " + std::string(kReservedMetadata));
  }
  RANKLAB_CHECK(!options.checksums || options.chunk_bytes > 0, ErrorKind::kInvalidArgument, .where = "checkpoint",
                .what = "chunks of no bytes", .got = "0", .want = "at least 1");
}

std::vector<uint64_t> chunk_hashes(std::span<const std::byte> bytes, uint64_t chunk_bytes) {
  std::vector<uint64_t> hashes;
  for (; !bytes.empty(); bytes = bytes.subspan(std::min<uint64_t>(chunk_bytes, bytes.size())))
    hashes.push_back(xxh3(bytes.first(std::min<uint64_t>(chunk_bytes, bytes.size()))));
  return hashes;
}

}  // namespace

SafetensorsStream::SafetensorsStream(const std::string& path, std::vector<TensorEntry> tensors,
                                     const SafetensorsWriteOptions& options)
    : options_(options), tensors_(std::move(tensors)) {
  check_metadata(options_);
  lay_out();
  begin_checksums();
  uint64_t hash = 0;
  data_begin_ = header(hash).size();
  const uint64_t file_bytes = data_begin_ + (tensors_.empty() ? 0 : tensors_.back().end);
  file_ = std::make_unique<AtomicFile>(path,
                                       ErrorText{.where = "checkpoint",
                                                 .what = "cannot write the file",
                                                 .fix = "check the folder, its permissions and the free space: " +
                                                        human_bytes(static_cast<double>(file_bytes)) + " are needed"},
                                       AtomicFileOptions{.durable = options_.durable, .calls = options_.calls});
}

void SafetensorsStream::lay_out() {
  std::ranges::sort(tensors_, {}, &TensorEntry::name);
  const auto twice = std::ranges::adjacent_find(tensors_, {}, &TensorEntry::name);
  RANKLAB_CHECK(twice == tensors_.end(), ErrorKind::kInvalidArgument, .where = "checkpoint",
                .what = "two tensors have one name", .got = quote(printable(twice->name)), .want = "each name once");
  std::ranges::stable_sort(tensors_, std::ranges::greater(), &TensorEntry::type);
  uint64_t end = 0;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    TensorEntry& tensor = tensors_[i];
    tensor.begin = end;
    tensor.end = end += checked_bytes(tensor);
    positions_[tensor.name] = i;
    missing_.insert(tensor.name);
  }
}

// Adds placeholders for all hashes, so that the header has its final length.
void SafetensorsStream::begin_checksums() {
  if (!options_.checksums) return;
  checksums_.chunk_bytes = options_.chunk_bytes;
  for (const TensorEntry& tensor : tensors_)
    checksums_.chunks[tensor.name].resize(chunk_count(tensor.size_bytes(), options_.chunk_bytes));
}

// The 8 bytes of the length, followed by the JSON.
std::string SafetensorsStream::header(uint64_t& hash) const {
  std::map<std::string, std::string> metadata = options_.metadata;
  if (options_.checksums) add_checksums(checksums_, metadata);
  std::string json = safetensors_header_json(tensors_, metadata);
  if (options_.checksums) hash = seal_header(json);
  RANKLAB_CHECK(json.size() <= kMostHeaderBytes, ErrorKind::kInvalidArgument, .where = "checkpoint",
                .what = "the header is longer than readers accept", .got = std::to_string(json.size()) + " bytes",
                .want = "at most " + std::to_string(kMostHeaderBytes), .fix = "write several files, or larger chunks");
  std::string length(8, '\0');
  for (size_t i = 0; i < length.size(); ++i) length[i] = static_cast<char>(json.size() >> (8 * i));
  return length + json;
}

void SafetensorsStream::write_at(uint64_t offset, std::span<const char> bytes) {
  if (bytes.empty()) return;
  if (offset != offset_) file_->seek(offset);
  file_->write({bytes.data(), bytes.size()});
  offset_ = offset + bytes.size();
}

void SafetensorsStream::add(const std::string& name, std::span<const std::byte> bytes) {
  RANKLAB_CHECK(missing_.erase(name) == 1, ErrorKind::kInvalidArgument, .where = "checkpoint",
                .what = "no tensor is awaited by this name", .got = quote(printable(name)), .want = "each once");
  const TensorEntry& tensor = tensors_[positions_.at(name)];
  RANKLAB_CHECK(bytes.size() == tensor.size_bytes(), ErrorKind::kInvalidArgument, .where = "checkpoint",
                .what = "tensor " + quote(name) + " does not have the size of its shape",
                .got = std::to_string(bytes.size()) + " bytes",
                .want = std::to_string(tensor.size_bytes()) + " bytes for " + std::string(ranklab::name(tensor.type)) +
                        " " + shape_text(tensor.shape));
  if (options_.checksums) checksums_.chunks.at(name) = chunk_hashes(bytes, options_.chunk_bytes);
  write_at(data_begin_ + tensor.begin, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

WrittenSafetensors SafetensorsStream::commit() {
  RANKLAB_CHECK(missing_.empty(), ErrorKind::kInvalidArgument, .where = "checkpoint", .what = "a tensor did not arrive",
                .got = quote(printable(*missing_.begin())), .want = "all of them");
  WrittenSafetensors written;
  const std::string text = header(written.header_xxh3);
  RANKLAB_CHECK(text.size() == data_begin_, ErrorKind::kInternal, .where = "checkpoint",
                .what = "the header changed its length", .got = std::to_string(text.size()),
                .want = std::to_string(data_begin_));
  write_at(0, text);
  file_->commit();
  written.file_bytes = data_begin_ + (tensors_.empty() ? 0 : tensors_.back().end);
  return written;
}

}  // namespace ranklab
