// Two checkpoints side by side as what they say of the whole model, whatever layouts wrote them: tensors that one of
// them lacks, types, shapes and elements that differ, and where training stands. Settings and layouts that differ are
// told, but are no difference of the state. Cost: every byte of both is read once; one tensor of both in memory.
// Thread rule: pure.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/tensor_diff.h"

namespace ranklab {

struct CheckpointDifference {
  std::vector<TensorDifference> tensors = {};  // by name
  uint64_t same_tensors = 0;
  std::vector<std::string> progress = {};  // "step: 40 in a, 50 in b"
  std::vector<std::string> settings = {};  // keys; they do not count
  bool same() const { return tensors.empty() && progress.empty(); }
};

CheckpointDifference diff_checkpoints(const Checkpoint& a, const Checkpoint& b);

}  // namespace ranklab
