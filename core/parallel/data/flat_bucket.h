// The memory of a gradient bucket: one flat tensor of which each parameter's sum is a view. It may be allocated and
// freed within a step. Cost: filling new memory with zeros. Thread rule: its rank's thread.
#pragma once
#include <map>
#include <vector>

#include "core/parallel/data/grad_accumulator.h"
#include "core/parallel/data/grad_bucket.h"

namespace ranklab {

struct GradSlot {
  Parameter* parameter = nullptr;
  size_t bucket = 0;   // index among the reducer's buckets
  int64_t offset = 0;  // elements
  GradSum sum = {};
  bool arrived = false;            // has arrived in this pass
  bool fresh = false;              // has completed a microbatch that no reduction includes yet
  std::map<int, int> stages = {};  // number of the rank's stages that have the parameter, by chain
  // how many of these stages have completed a microbatch, by microbatch, until all have
  std::map<int, int> passes = {};
  // A gradient that is wrongly added after the reduction (InjectedBug::kLastMicrobatchLocal).
  at::Tensor after_sum = {};
};

struct FlatBucket : GradBucket {
  at::ScalarType type = at::kFloat;  // of gradients
  std::vector<GradSlot> slots;
  at::Tensor flat;                 // undefined: no memory
  std::vector<at::Tensor> levels;  // further tensors of the same size, used by the bucket's accumulator
  int reductions = 0;              // number of reductions started in this step
  bool last_reduction = true;      // whether the latest one completes the step's sums

  void allocate(int num_levels);  // allocates only what is not allocated yet
  void release();
};

}  // namespace ranklab
