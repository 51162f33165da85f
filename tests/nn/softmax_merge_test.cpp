// Attention over several blocks of keys, merged, against attention over all of them at once.
#include "core/nn/attention/softmax_merge.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/nn/attention/block_attention.h"
#include "core/sim/aten.h"
#include "tests/golden/golden.h"

namespace ranklab {
namespace {

constexpr double kHidden = -std::numeric_limits<double>::infinity();

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

SoftmaxedHeads drawn(double salt, int64_t width, at::ScalarType type) {
  const at::ScalarType wide = type == at::kDouble ? at::kDouble : at::kFloat;
  return {golden::wave({2, 5, 3, width}, salt).to(type).permute({0, 2, 1, 3}),
          golden::wave({2, 3, 5}, salt + 0.5, 6).to(wide)};
}

SoftmaxedHeads copied(const SoftmaxedHeads& x, at::ScalarType type) {
  return {x.out.to(type).clone(), x.log_sum_exp.to(type).clone()};
}

TEST(SoftmaxMerge, OnePassEqualsPlainOps) {
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16, at::kHalf}) {
    const at::ScalarType wide = type == at::kDouble ? at::kDouble : at::kFloat;
    for (const int64_t width : {1, 7, 64}) {
      const SoftmaxedHeads part = drawn(0.3, width, type), sums = drawn(0.8, width, wide);
      part.log_sum_exp.select(2, 1).fill_(kHidden);
      sums.log_sum_exp.select(2, 2).fill_(kHidden);
      part.log_sum_exp.select(2, 3).fill_(kHidden);  // neither has seen a key
      sums.log_sum_exp.select(2, 3).fill_(kHidden);
      sums.out.select(2, 3).zero_();
      const SoftmaxedHeads got = copied(sums, wide), want = copied(sums, at::kDouble);
      merge_softmax(got, part, type);
      merge_softmax_reference(want, copied(part, at::kDouble));
      const double most = type == at::kDouble ? 1e-14 : 1e-6;
      EXPECT_LT(largest_difference(got.out, want.out), most) << type << " " << width;
      EXPECT_TRUE(at::equal(got.out.select(2, 1), sums.out.select(2, 1)));
      EXPECT_TRUE(got.log_sum_exp.select(2, 3).eq(kHidden).all().item<bool>());
      for (const int64_t row : {0, 1, 2, 4})
        EXPECT_LT(largest_difference(got.log_sum_exp.select(2, row), want.log_sum_exp.select(2, row)), 10 * most);
    }
  }
}

// A NaN among the scores is the sign of a diverged run.
TEST(SoftmaxMerge, KeepsWhatIsNoNumber) {
  const SoftmaxedHeads part = drawn(0.3, 4, at::kFloat), sums = copied(drawn(0.8, 4, at::kFloat), at::kFloat);
  part.log_sum_exp.select(2, 1).fill_(std::nan(""));
  merge_softmax(sums, part, at::kFloat);
  EXPECT_TRUE(sums.out.select(2, 1).isnan().all().item<bool>());
  EXPECT_TRUE(sums.out.select(2, 0).isfinite().all().item<bool>());
}

// Blocks of different sizes, over some of the queries, one after another.
TEST(SoftmaxMerge, OfBlocksIsAttentionOverAllKeys) {
  const auto heads = [](double salt) { return golden::wave({2, 3, 12, 8}, salt, 2); };
  const SoftmaxHeads in{heads(0.1), heads(0.4), heads(0.7)};
  const at::NoGradGuard no_grad;
  SoftmaxMerge merge(in.q, 8);
  for (const AttentionBlock& block : {AttentionBlock{0, 12, 0, 5}, {0, 5, 5, 2}, {5, 7, 5, 2}, {0, 12, 7, 5}})
    merge.add(block, block_attention(in, block, {}), at::kDouble);
  const at::Tensor scores = at::matmul(in.q, in.k.transpose(2, 3)) / std::sqrt(8.0);
  EXPECT_LT(largest_difference(merge.result().out, at::matmul(at::softmax(scores, -1), in.v)), 1e-14);
  EXPECT_LT(largest_difference(merge.result().log_sum_exp, at::logsumexp(scores, {-1})), 1e-14);
}

}  // namespace
}  // namespace ranklab
