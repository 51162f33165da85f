// Any bytes as a safetensors file, once as they are and, when they hold ranklab's checksums, once with the header's
// hash made right, so that what stands behind it is reached. The reader refuses with ranklab's own error, or the
// tensors fill the file without hole or overlap, and written again they are the same tensors.
#include <cstdlib>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/checkpoint/safetensors.h"
#include "core/checkpoint/tensor_diff.h"
#include "tests/fuzz/scratch_folder.h"

using namespace ranklab;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void read_and_write(const ScratchFolder& folder, std::string_view bytes) {
  const std::string again = folder.path() + "/again";
  try {
    const SafetensorsFile file(folder.write("file", bytes));
    std::vector<std::vector<std::byte>> data;
    std::vector<TensorToWrite> tensors;
    uint64_t sum = 0;
    for (const TensorEntry& entry : file.tensors()) sum += entry.size_bytes();
    require(8 + sum <= bytes.size());
    file.verify();
    for (const TensorEntry& entry : file.tensors()) {
      data.push_back(file.read(entry));
      tensors.push_back({.name = entry.name, .type = entry.type, .shape = entry.shape, .bytes = data.back()});
    }
    write_safetensors(again, tensors, {.metadata = file.metadata(), .chunk_bytes = 8, .durable = false});
    const SafetensorsFile copy(again);
    copy.verify();
    const TensorDifferences difference = diff_tensors(tensor_places(file), tensor_places(copy));
    require(difference.tensors.empty() && keys_that_differ(file.metadata(), copy.metadata()).empty());
    require(difference.same_tensors == tensors.size());
  } catch (const Error& error) {
    // What was read can be written.
    require(error.kind() == ErrorKind::kBadFile);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const ScratchFolder kFolder("fuzz_safetensors");
  std::string bytes(reinterpret_cast<const char*>(data), size);
  read_and_write(kFolder, bytes);
  if (size < 8 || bytes.find("\"ranklab.header_xxh3\":\"") == std::string::npos) return 0;
  uint64_t length = 0;
  for (size_t i = 8; i-- > 0;) length = length << 8 | data[i];
  if (length > size - 8) return 0;
  std::string json = bytes.substr(8, length);
  try {
    seal_header(json);
  } catch (const Error&) {
    return 0;  // no room for the digits
  }
  read_and_write(kFolder, bytes.replace(8, length, json));
  return 0;
}
