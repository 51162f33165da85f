// Adds the gradients of microbatches in a balanced binary tree over the microbatch index. The communicator uses the
// same tree over dp ranks, so with power-of-two sizes dp 8, dp 4 x 2 microbatches and 8 microbatches on one rank add
// the same numbers in the same order and give the same bits. It works like a binary counter: level l holds the sum of
// the last 2^l microbatches. Memory: ceil(log2 microbatches) further buckets. The rounding error grows with log2 of the
// count.
#include <bit>
#include <utility>

#include "core/parallel/data/grad_accumulator.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

class Pairwise : public GradAccumulator {
 public:
  int levels(int num_microbatches) const override {
    return std::bit_width(static_cast<unsigned>(num_microbatches - 1));
  }
  void add(GradSum& sum, const at::Tensor& grad, int microbatch) const override {
    at::Tensor& partial = sum.partial[microbatch];
    partial = partial.defined() ? partial + grad : grad.to(sum.view.scalar_type());
  }
  void complete(GradSum& sum, int microbatch) const override {
    at::Tensor grad = std::exchange(sum.partial[microbatch], {});
    if (!grad.defined()) grad = at::zeros_like(sum.view);
    fold(sum, grad);
    ++sum.completed;
    sum.partial.erase(microbatch);
  }

 private:
  static void fold(GradSum& sum, const at::Tensor& grad) {
    // This microbatch completes as many levels as its index has trailing one bits. The last microbatch adds up all
    // levels that hold a sum; if the count is a power of two, these are the same levels.
    const unsigned held = static_cast<unsigned>(sum.completed);
    const int complete = std::countr_one(held);
    const bool is_last = sum.completed + 1 == sum.total;
    at::Tensor& target = is_last ? sum.view : sum.levels[static_cast<size_t>(complete)];
    bool started = false;
    for (size_t level = 0; level < sum.levels.size(); ++level) {
      const bool take = is_last ? ((held >> level) & 1u) != 0 : static_cast<int>(level) < complete;
      if (!take) continue;
      if (started) {
        target.add_(sum.levels[level]);
      } else {
        at::add_out(target, sum.levels[level], grad);
      }
      started = true;
    }
    if (!started) target.copy_(grad);
  }
};

}  // namespace

const GradAccumulator& pairwise_accumulator() {
  static const Pairwise pairwise;
  return pairwise;
}

}  // namespace ranklab
