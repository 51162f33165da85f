// The memory of a gradient bucket: one flat tensor, in which each parameter's sum is a view. It may come and go within
// a step. Cost: zeros where memory is made. Thread rule: its rank's thread.
#pragma once
#include <vector>

#include "core/parallel/data/grad_accumulator.h"
#include "core/parallel/data/grad_bucket.h"

namespace ranklab {

struct GradSlot {
  Parameter* parameter = nullptr;
  size_t bucket = 0;   // among the reducer's
  int64_t offset = 0;  // elements
  GradSum sum = {};
  bool arrived = false;  // in this pass
};

struct FlatBucket : GradBucket {
  at::ScalarType type = at::kFloat;  // of gradients
  std::vector<GradSlot> slots;
  at::Tensor flat;                 // undefined: no memory
  std::vector<at::Tensor> levels;  // further tensors like it, that its accumulator works in

  void allocate(int num_levels);  // what is not there yet
  void release();
};

}  // namespace ranklab
