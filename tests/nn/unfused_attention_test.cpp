// Attention with all scores in memory against plain differentiable ops, by the name that training takes it by.
#include "core/nn/attention/unfused_attention.h"

#include <gtest/gtest.h>

#include "core/nn/attention/attention.h"
#include "core/sim/aten.h"
#include "tests/golden/golden.h"
#include "tests/nn/attention_reference.h"

namespace ranklab {
namespace {

class Unfused {
 public:
  Unfused() { use_gpu_attention(GpuAttention::kUnfused); }
  ~Unfused() { use_gpu_attention(GpuAttention::kAuto); }
  Unfused(const Unfused&) = delete;
  Unfused& operator=(const Unfused&) = delete;
};

TEST(UnfusedAttention, IsTheReference) {
  const Unfused scope;
  for (const int64_t window : {0, 5}) {
    const AttentionShape shape{.heads = 4, .groups = 2, .head_dim = 6, .window = window};
    for (const bool recompute : {false, true})
      expect_attention_is_the_reference(shape, golden::wave({20, 2, 48}, 0.7), recompute);
  }
}

TEST(UnfusedAttention, BoundsScores) {
  const Unfused scope;
  const AttentionShape shape{.heads = 2, .groups = 2, .head_dim = 6, .cap = 0.5};
  expect_attention_is_the_reference(shape, golden::wave({12, 2, 36}, 0.7), /*recompute=*/false);
}

}  // namespace
}  // namespace ranklab
