#include "core/parallel/data/grad_accumulator.h"

#include <utility>

#include "core/parallel/data/grad_tree.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

// On a GPU the weight-gradient GEMM accumulates into the bucket directly (Megatron's gradient accumulation fusion).
class Sequential : public GradAccumulator {
 public:
  int levels(int) const override { return 0; }
  void add(GradSum& sum, const at::Tensor& grad, int) const override {
    if (std::exchange(sum.empty, false)) {
      sum.view.copy_(grad);
    } else {
      sum.view.add_(grad);
    }
  }
  void complete(GradSum& sum, int) const override {
    if (++sum.completed == sum.total && sum.empty) sum.view.zero_();
  }
};

class Pairwise : public GradAccumulator {
 public:
  int levels(int num_microbatches) const override { return grad_tree_levels(num_microbatches); }
  void add(GradSum& sum, const at::Tensor& grad, int microbatch) const override {
    at::Tensor& partial = sum.partial[microbatch];
    partial = partial.defined() ? partial + grad : grad.to(sum.view.scalar_type());
  }
  void complete(GradSum& sum, int microbatch) const override {
    at::Tensor grad = std::exchange(sum.partial[microbatch], {});
    if (!grad.defined()) grad = at::zeros_like(sum.view);
    const int index = sum.completed++;
    fold_into_tree(grad, index, sum.completed == sum.total, sum.levels, sum.view);
    sum.partial.erase(microbatch);
  }
};

}  // namespace

const GradAccumulator& grad_accumulator(GradAccumulation kind) {
  static const Sequential sequential;
  static const Pairwise pairwise;
  if (kind == GradAccumulation::kPairwise) return pairwise;
  return sequential;
}

}  // namespace ranklab
