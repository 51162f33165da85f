#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/checkpoint/checksum.h"
#include "core/checkpoint/safetensors.h"

namespace ranklab {
namespace {

void check(const TensorToWrite& tensor) {
  const std::string fault = fault_of_tensor_name(tensor.name);
  RANKLAB_CHECK(fault.empty(), ErrorKind::kInvalidArgument, .where = "checkpoint", .what = "a tensor's name " + fault,
                .got = quote(printable(tensor.name)), .want = "printable UTF-8");
  uint64_t bytes = 0;
  RANKLAB_CHECK(
      tensor_bytes(tensor.shape, tensor.type, bytes) && bytes == tensor.bytes.size(), ErrorKind::kInvalidArgument,
      .where = "checkpoint", .what = "tensor " + quote(tensor.name) + " has not the size of its shape",
      .got = std::to_string(tensor.bytes.size()) + " bytes",
      .want = std::to_string(bytes) + " bytes for " + std::string(name(tensor.type)) + " " + shape_text(tensor.shape));
}

std::vector<const TensorToWrite*> in_order(std::span<const TensorToWrite> tensors) {
  std::vector<const TensorToWrite*> order;
  for (const TensorToWrite& tensor : tensors) {
    check(tensor);
    order.push_back(&tensor);
  }
  std::ranges::sort(order, {}, &TensorToWrite::name);
  const auto twice = std::ranges::adjacent_find(order, {}, &TensorToWrite::name);
  RANKLAB_CHECK(twice == order.end(), ErrorKind::kInvalidArgument, .where = "checkpoint",
                .what = "two tensors have one name", .got = quote((*twice)->name), .want = "each name once");
  std::ranges::stable_sort(order, std::ranges::greater(), &TensorToWrite::type);
  return order;
}

std::vector<uint64_t> chunk_hashes(std::span<const std::byte> bytes, uint64_t chunk_bytes) {
  std::vector<uint64_t> hashes;
  for (; !bytes.empty(); bytes = bytes.subspan(std::min<uint64_t>(chunk_bytes, bytes.size())))
    hashes.push_back(xxh3(bytes.first(std::min<uint64_t>(chunk_bytes, bytes.size()))));
  return hashes;
}

// The 8 bytes of length and the JSON.
std::string whole_header(std::span<const TensorToWrite* const> order, const SafetensorsWriteOptions& options,
                         WrittenSafetensors& written) {
  std::vector<TensorEntry> entries;
  uint64_t end = 0;
  for (const TensorToWrite* tensor : order) {
    entries.push_back({.name = tensor->name,
                       .type = tensor->type,
                       .shape = tensor->shape,
                       .begin = end,
                       .end = end + tensor->bytes.size()});
    end = entries.back().end;
  }
  std::map<std::string, std::string> metadata = options.metadata;
  for (const auto& [key, value] : metadata) {
    RANKLAB_CHECK(!key.starts_with(kReservedMetadata), ErrorKind::kInvalidArgument, .where = "checkpoint",
                  .what = "metadata under a name that the checksums have", .got = quote(printable(key)),
                  .want = "a name that does not begin with " + std::string(kReservedMetadata));
  }
  if (options.checksums) {
    RANKLAB_CHECK(options.chunk_bytes > 0, ErrorKind::kInvalidArgument, .where = "checkpoint",
                  .what = "chunks of no bytes", .got = "0", .want = "at least 1");
    Checksums checksums{.chunk_bytes = options.chunk_bytes};
    for (const TensorToWrite* tensor : order)
      checksums.chunks[tensor->name] = chunk_hashes(tensor->bytes, options.chunk_bytes);
    add_checksums(checksums, metadata);
  }
  std::string json = safetensors_header_json(entries, metadata);
  if (options.checksums) written.header_xxh3 = seal_header(json);
  RANKLAB_CHECK(json.size() <= kMostHeaderBytes, ErrorKind::kInvalidArgument, .where = "checkpoint",
                .what = "the header is longer than readers accept", .got = std::to_string(json.size()) + " bytes",
                .want = "at most " + std::to_string(kMostHeaderBytes), .fix = "write several files, or larger chunks");
  std::string length(8, '\0');
  for (size_t i = 0; i < length.size(); ++i) length[i] = static_cast<char>(json.size() >> (8 * i));
  written.file_bytes = length.size() + json.size() + end;
  return length + json;
}

}  // namespace

WrittenSafetensors write_safetensors(const std::string& path, std::span<const TensorToWrite> tensors,
                                     const SafetensorsWriteOptions& options) {
  WrittenSafetensors written;
  const std::vector<const TensorToWrite*> order = in_order(tensors);
  const std::string header = whole_header(order, options, written);
  AtomicFile file(path,
                  {.where = "checkpoint",
                   .what = "cannot write the file",
                   .fix = "check the folder, its permissions and the free space: " +
                          human_bytes(static_cast<double>(written.file_bytes)) + " are needed"},
                  {.durable = options.durable, .calls = options.calls});
  file.write(header);
  for (const TensorToWrite* tensor : order)
    file.write({reinterpret_cast<const char*>(tensor->bytes.data()), tensor->bytes.size()});
  file.commit();
  return written;
}

}  // namespace ranklab
