#include "core/checkpoint/tensor_source.h"

#include <algorithm>

#include "core/base/text.h"

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

CheckpointTensors::CheckpointTensors(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {
  for (const auto& [name, tensor] : checkpoint.manifest().tensors)
    tensors_.push_back({name, tensor.type, tensor.shape});
}

}  // namespace ranklab
