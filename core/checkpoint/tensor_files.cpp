#include "core/checkpoint/tensor_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/checkpoint/safetensors_stream.h"

namespace ranklab {
namespace {

uint64_t bytes_of(const TensorInfo& tensor) {
  uint64_t bytes = 0;
  RANKLAB_CHECK(tensor_bytes(tensor.shape, tensor.type, bytes), ErrorKind::kInvalidArgument, .where = "checkpoint",
                .what = "tensor " + quote(tensor.name) + " is too large", .got = tensor.describe(),
                .want = "less than 2^64 bytes");
  return bytes;
}

}  // namespace

std::vector<std::vector<TensorInfo>> files_of_at_most(const std::vector<TensorInfo>& tensors, uint64_t most_bytes) {
  std::vector<std::vector<TensorInfo>> files;
  uint64_t room = 0;
  for (const TensorInfo& tensor : tensors) {
    const uint64_t bytes = bytes_of(tensor);
    if (files.empty() || bytes > room) {
      files.emplace_back();
      room = most_bytes;
    }
    room -= std::min(bytes, room);
    files.back().push_back(tensor);
  }
  return files;
}

WrittenSafetensors write_tensors(const std::string& path, const std::vector<TensorInfo>& tensors,
                                 const std::function<std::vector<std::byte>(const TensorInfo&)>& bytes_of,
                                 const SafetensorsWriteOptions& options) {
  std::vector<TensorEntry> entries;
  for (const TensorInfo& tensor : tensors)
    entries.push_back({.name = tensor.name, .type = tensor.type, .shape = tensor.shape});
  SafetensorsStream stream(path, std::move(entries), options);
  for (const TensorInfo& tensor : tensors) stream.add(tensor.name, bytes_of(tensor));
  return stream.commit();
}

void make_empty_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const bool empty = !error && std::filesystem::is_empty(folder, error);
  RANKLAB_CHECK(!error, ErrorKind::kIo, .where = "checkpoint", .what = "cannot write into the folder",
                .got = folder + ": " + error.message(), .want = "a folder of yours",
                .fix = "pass a folder that you may write to");
  RANKLAB_CHECK(empty, ErrorKind::kInvalidArgument, .where = "checkpoint", .what = "the output folder is not empty",
                .got = folder, .want = "a new or empty folder", .fix = "name another one; nothing is overwritten");
}

}  // namespace ranklab
