// How a rank accumulates a parameter's gradients over a step's microbatches before they are reduced. Sums may have a
// wider type than the gradients (Megatron's accumulate_allreduce_grads_in_fp32). Memory: pairwise, log2(microbatches)
// further copies. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <map>
#include <vector>

namespace ranklab {

enum class GradAccumulation {
  kSequential,  // in place, one after another: least memory
  kPairwise,    // a balanced tree (accumulate_pairwise.cpp): bit-equal to more dp ranks with fewer microbatches
};

// The sum of a parameter's gradients in a step.
struct GradSum {
  at::Tensor view;                    // view of the bucket, in the parameter's shape
  std::vector<at::Tensor> levels;     // the corresponding views of the bucket's levels
  std::map<int, at::Tensor> partial;  // gradients of microbatches that are not complete yet, by microbatch
  int total = 0;                      // microbatches to complete
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
  virtual int levels(int num_microbatches) const = 0;  // number of levels that a bucket needs
  virtual void add(GradSum& sum, const at::Tensor& grad, int microbatch) const = 0;
  // Call when all gradients of the microbatch have been added; after the last microbatch the sum is in `view`.
  virtual void complete(GradSum& sum, int microbatch) const = 0;
};

const GradAccumulator& pairwise_accumulator();
const GradAccumulator& grad_accumulator(GradAccumulation kind);

}  // namespace ranklab
