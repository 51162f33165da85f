// How a parameter's gradients of a step's microbatches add up on a rank before they travel. Sums may be of a wider type
// than the gradients (Megatron's accumulate_allreduce_grads_in_fp32). Memory: pairwise, log2(microbatches) further
// copies. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <map>
#include <vector>

namespace ranklab {

enum class GradAccumulation {
  kSequential,  // in place, one after another: least memory
  kPairwise,    // a balanced tree (accumulate_pairwise.cpp): bit-equal to more dp ranks with fewer microbatches
};

// A parameter's sum in a step.
struct GradSum {
  at::Tensor view;                    // its part of the bucket, in the parameter's shape
  std::vector<at::Tensor> levels;     // ... of the bucket's levels
  std::map<int, at::Tensor> partial;  // of microbatches that are not complete
  int total = 0;                      // microbatches to complete, over the stages that have the parameter
  int completed = 0;
  bool empty = true;  // no gradient yet

  void begin_step() {
    total = completed = 0;
    empty = true;
    partial.clear();
  }
};

class GradAccumulator {
 public:
  virtual ~GradAccumulator() = default;
  virtual int levels(int num_microbatches) const = 0;  // of a bucket
  virtual void add(GradSum& sum, const at::Tensor& grad, int microbatch) const = 0;
  // All gradients of the microbatch were added; after the last one the sum is in `view`.
  virtual void complete(GradSum& sum, int microbatch) const = 0;
};

const GradAccumulator& pairwise_accumulator();
const GradAccumulator& grad_accumulator(GradAccumulation kind);

}  // namespace ranklab
