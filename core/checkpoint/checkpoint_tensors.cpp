#include "core/checkpoint/checkpoint_tensors.h"

namespace ranklab {

CheckpointTensors::CheckpointTensors(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {
  for (const auto& [name, tensor] : checkpoint.manifest().tensors)
    tensors_.push_back({name, tensor.type, tensor.shape});
}

}  // namespace ranklab
