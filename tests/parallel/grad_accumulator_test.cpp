// Pairwise sums are those of the balanced tree, whatever the count.
#include "core/parallel/data/grad_accumulator.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/sim/aten.h"
#include "tests/golden/golden.h"

namespace ranklab {
namespace {

const GradAccumulator& kPairwise = pairwise_accumulator();

at::Tensor fold_all(const std::vector<at::Tensor>& grads) {
  const int count = static_cast<int>(grads.size());
  // Stale contents must never be read.
  GradSum sum;
  sum.view = at::full_like(grads[0], std::nan(""));
  for (int level = 0; level < kPairwise.levels(count); ++level)
    sum.levels.push_back(at::full_like(grads[0], std::nan("")));
  sum.begin_step();
  sum.total = count;
  for (int i = 0; i < count; ++i) {
    kPairwise.add(sum, grads[static_cast<size_t>(i)], i);
    kPairwise.complete(sum, i);
  }
  return sum.view;
}

std::vector<at::Tensor> gradients(int count) {
  std::vector<at::Tensor> grads;
  for (int i = 0; i < count; ++i) grads.push_back(golden::wave({50}, 0.1 + i, 1e3).to(at::kFloat));
  return grads;
}

TEST(PairwiseAccumulator, PowersOfTwoAreTheBalancedTree) {
  const auto g = gradients(8);
  EXPECT_TRUE(at::equal(fold_all(gradients(1)), g[0]));
  EXPECT_TRUE(at::equal(fold_all(gradients(2)), g[0] + g[1]));
  const at::Tensor tree = ((g[0] + g[1]) + (g[2] + g[3])) + ((g[4] + g[5]) + (g[6] + g[7]));
  EXPECT_TRUE(at::equal(fold_all(g), tree));
  at::Tensor sequential = g[0].clone();
  for (size_t i = 1; i < 8; ++i) sequential.add_(g[i]);
  EXPECT_FALSE(at::equal(tree, sequential)) << "the numbers are too tame to tell the orders apart";
}

TEST(PairwiseAccumulator, AnyCountAddsEachGradientOnce) {
  for (int count = 1; count <= 17; ++count) {
    std::vector<at::Tensor> grads;
    for (int i = 0; i < count; ++i) grads.push_back(at::full({3}, static_cast<double>(1 << i), at::kDouble));
    EXPECT_EQ(fold_all(grads)[0].item<double>(), static_cast<double>((1 << count) - 1)) << count;
  }
}

TEST(PairwiseAccumulator, LevelsAreLog2) {
  EXPECT_EQ(kPairwise.levels(1), 0);
  EXPECT_EQ(kPairwise.levels(2), 1);
  EXPECT_EQ(kPairwise.levels(3), 2);
  EXPECT_EQ(kPairwise.levels(8), 3);
  EXPECT_EQ(kPairwise.levels(9), 4);
}

}  // namespace
}  // namespace ranklab
