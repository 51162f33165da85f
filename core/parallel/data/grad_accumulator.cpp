#include "core/parallel/data/grad_accumulator.h"

#include <utility>

#include "core/nn/accumulate.h"
#include "core/sim/aten.h"
#include "core/sim/type_watch.h"

namespace ranklab {
namespace {

// On a GPU the weight-gradient GEMM accumulates into the bucket directly (Megatron's gradient accumulation fusion).
class Sequential : public GradAccumulator {
 public:
  int levels(int) const override { return 0; }
  void add(GradSum& sum, const at::Tensor& grad, int) const override {
    const bool first = std::exchange(sum.empty, false);
    if (only_shapes(grad)) return;
    accumulate(sum.view, grad, first);
  }
  void complete(GradSum& sum, int) const override {
    if (++sum.completed == sum.total && sum.empty) sum.view.zero_();
  }
};

}  // namespace

const GradAccumulator& grad_accumulator(GradAccumulation kind) {
  static const Sequential sequential;
  return kind == GradAccumulation::kPairwise ? pairwise_accumulator() : sequential;
}

}  // namespace ranklab
