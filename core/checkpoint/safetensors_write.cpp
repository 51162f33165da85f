#include "core/checkpoint/safetensors.h"
#include "core/checkpoint/safetensors_stream.h"

namespace ranklab {

WrittenSafetensors write_safetensors(const std::string& path, std::span<const TensorToWrite> tensors,
                                     const SafetensorsWriteOptions& options) {
  std::vector<TensorEntry> entries;
  for (const TensorToWrite& tensor : tensors)
    entries.push_back({.name = tensor.name, .type = tensor.type, .shape = tensor.shape});
  SafetensorsStream stream(path, std::move(entries), options);
  for (const TensorToWrite& tensor : tensors) stream.add(tensor.name, tensor.bytes);
  return stream.commit();
}

}  // namespace ranklab
