#include "core/checkpoint/tensor_source.h"

#include <algorithm>

namespace ranklab {

const TensorInfo* TensorSource::find(const std::string& name) const {
  const auto found = std::ranges::lower_bound(tensors(), name, {}, &TensorInfo::name);
  return found == tensors().end() || found->name != name ? nullptr : &*found;
}

const TensorInfo& TensorSource::tensor(const std::string& name) const {
  const TensorInfo* found = find(name);
  if (found == nullptr) refuse_checkpoint_file(where(), "a tensor is missing", quote(name), "a tensor of this name");
  return *found;
}

std::vector<std::byte> TensorSource::read_slice(const std::string& name, int64_t index) const {
  const std::vector<std::byte> all = read(name);
  const auto bytes = static_cast<std::ptrdiff_t>(all.size()) / tensor(name).shape.at(0);
  return {all.begin() + index * bytes, all.begin() + (index + 1) * bytes};
}

CheckpointTensors::CheckpointTensors(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {
  for (const auto& [name, tensor] : checkpoint.manifest().tensors)
    tensors_.push_back({name, tensor.type, tensor.shape});
}

void CheckpointTensors::read_blocks(const std::string& name,
                                    const std::function<void(std::span<const std::byte>)>& visit) const {
  constexpr int64_t kBlockBytes = int64_t{64} << 20;
  const StoredTensor& stored = checkpoint_.tensor(name);
  const auto width = static_cast<int64_t>(size_bytes(stored.type));
  const TensorSlice all = whole_slice(stored.shape);
  std::vector<std::byte> bytes;
  for (int64_t begin = all.begin; begin < all.end; begin += kBlockBytes / width) {
    TensorSlice block = all;
    block.begin = begin;
    block.end = std::min(all.end, begin + kBlockBytes / width);
    bytes.resize(static_cast<size_t>(block.elements() * width));
    checkpoint_.read(name, block, bytes);
    visit(bytes);
  }
}

}  // namespace ranklab
