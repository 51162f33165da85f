// Compares the whole-model contents of two checkpoints, whatever layouts wrote them: tensors that only one of them has,
// differing types, shapes and elements, and training progress. Differing settings and layouts are reported but do not
// count as a difference of the state. Cost: reads every byte of both once; holds one tensor of both in memory. Thread
// rule: pure.
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
  std::vector<std::string> settings = {};  // keys; not counted as differences
  bool same() const { return tensors.empty() && progress.empty(); }
};

CheckpointDifference diff_checkpoints(const Checkpoint& a, const Checkpoint& b);

}  // namespace ranklab
