// The row kernels on bf16: the fp32 kernels on the widened numbers, rounded once.
#include <gtest/gtest.h>

#include <limits>

#include "core/base/error.h"
#include "core/nn/activation.h"
#include "core/nn/attention/attention.h"
#include "core/nn/head_norm.h"
#include "core/nn/kernels/row_kernels_16bit.h"
#include "core/nn/norm.h"
#include "core/nn/rope.h"
#include "core/sim/aten.h"
#include "tests/golden/golden.h"

namespace ranklab {
namespace {

using golden::wave;

at::Tensor bf16_wave(at::IntArrayRef shape, double salt, double scale = 1.0) {
  return wave(shape, salt, scale).to(at::kBFloat16);
}

TEST(Bf16, WidensAndRoundsAsTheTensorLibraryDoes) {
  for (uint32_t bits = 0; bits < (1u << 16); ++bits) {
    const float wide = kernels::widen(kernels::Bf16{static_cast<uint16_t>(bits)});
    EXPECT_EQ(std::bit_cast<uint32_t>(wide), bits << 16);
    if (wide != wide) continue;
    EXPECT_EQ(kernels::narrow<kernels::Bf16>(wide).bits, bits);
    // Between this number and the next: below the middle, the middle, above it.
    for (const uint32_t low : {0x7fffu, 0x8000u, 0x8001u}) {
      const auto between = std::bit_cast<float>((bits << 16) | low);
      const c10::BFloat16 want(between);
      EXPECT_TRUE(between != between || kernels::narrow<kernels::Bf16>(between).bits == want.x) << between;
    }
  }
  const float nan = kernels::widen(kernels::narrow<kernels::Bf16>(std::numeric_limits<float>::quiet_NaN()));
  EXPECT_NE(nan, nan);
}

TEST(Bf16, ANormIsTheRoundedOneOfItsRoundedInput) {
  const at::Tensor x = bf16_wave({70, 3, 40}, 0.1), weight = bf16_wave({40}, 0.2, 0.5);
  const NormOutput narrow = add_rms_norm(x, {}, weight, {1e-5});
  const NormOutput wide = add_rms_norm(x.to(at::kFloat), {}, weight.to(at::kFloat), {1e-5});
  EXPECT_TRUE(at::equal(narrow.normed, wide.normed.to(at::kBFloat16)));
  EXPECT_EQ(narrow.recipe.inv_rms.scalar_type(), at::kFloat);
  EXPECT_TRUE(at::equal(narrow.recipe.normed(), narrow.normed)) << "recomputed in backward";

  const at::Tensor branch = bf16_wave({70, 3, 40}, 0.7, 3.0);
  const NormOutput added = add_rms_norm(x, branch, weight, {1e-5});
  EXPECT_TRUE(at::equal(added.sum, x + branch));
  EXPECT_TRUE(at::equal(added.normed, add_rms_norm(x + branch, {}, weight, {1e-5}).normed));
}

// 1 + 0.003 is no bf16: the sum is made in fp32.
TEST(Bf16, TheOffsetOfANormsWeightIsAddedInFp32) {
  const at::Tensor x = bf16_wave({70, 3, 40}, 0.1), weight = bf16_wave({40}, 0.2, 0.003);
  const at::Tensor want = add_rms_norm(x.to(at::kFloat), {}, weight.to(at::kFloat) + 1.0, {1e-5}).normed;
  const NormOutput narrow = add_rms_norm(x, {}, weight, {1e-5, 1.0});
  EXPECT_TRUE(at::equal(narrow.normed, want.to(at::kBFloat16)));
  EXPECT_TRUE(at::equal(narrow.recipe.normed(), narrow.normed));
  const AttentionShape shape{4, 2, 10};
  const at::Tensor qkv = bf16_wave({7, 3, 80}, 0.1, 3.0), q = bf16_wave({10}, 0.2, 0.003), k = q.neg();
  const auto moved = [](const at::Tensor& w) { return w.to(at::kFloat) + 1.0; };
  EXPECT_TRUE(at::equal(head_norm(qkv, shape, {q, k, 1e-5, 1.0}),
                        head_norm(qkv.to(at::kFloat), shape, {moved(q), moved(k), 1e-5}).to(at::kBFloat16)));
}

TEST(Bf16, ANormOfHeadsIsTheRoundedOne) {
  const AttentionShape shape{4, 2, 10};
  const at::Tensor qkv = bf16_wave({70, 3, 80}, 0.1, 3.0), q = bf16_wave({10}, 0.2, 0.5), k = bf16_wave({10}, 0.9, 0.5);
  const auto wide = [](const at::Tensor& x) { return x.to(at::kFloat); };
  const at::Tensor want = head_norm(wide(qkv), shape, {wide(q), wide(k), 1e-5});
  EXPECT_TRUE(at::equal(head_norm(qkv, shape, {q, k, 1e-5}), want.to(at::kBFloat16)));
}

TEST(Bf16, SwigluIsTheRoundedOne) {
  const at::Tensor gate_up = bf16_wave({33, 3, 94}, 0.1, 20.0);
  EXPECT_TRUE(at::equal(swiglu(gate_up), swiglu(gate_up.to(at::kFloat)).to(at::kBFloat16)));
}

TEST(Bf16, RotaryTablesStayInFp32) {
  const AttentionShape shape{4, 2, 8};
  const at::Tensor qkv = bf16_wave({17, 3, 64}, 0.4, 2.0);
  const RopeTable rope = make_rope_table(64, 8, 100.0, at::TensorOptions(at::kFloat));
  const at::Tensor narrow = causal_attention(qkv, shape, rope);
  const at::Tensor wide = causal_attention(qkv.to(at::kFloat), shape, rope);
  EXPECT_LT(golden::relative_error(narrow.to(at::kDouble), wide.to(at::kDouble)), 0.01);
  EXPECT_THROW(causal_attention(qkv, shape, make_rope_table(64, 8, 100.0, at::TensorOptions(at::kBFloat16))), Error);
  // A late position: an angle of 8 bits would be off by whole turns.
  const at::Tensor x = at::ones({1, 1, 2048, 8}, at::kBFloat16);
  const RopeTable late = make_rope_table(2048, 8, 10.0, at::TensorOptions(at::kFloat));
  const at::Tensor want = apply_rope(x.to(at::kDouble), make_rope_table(2048, 8, 10.0, at::TensorOptions(at::kDouble)));
  EXPECT_LT((apply_rope(x, late).to(at::kDouble) - want).abs().max().item<double>(), 0.006);
}

TEST(Bf16, SquaresAreSummedInFp64) {
  const at::Tensor x = bf16_wave({5000}, 0.3, 7.0);
  const double want = x.to(at::kDouble).square().sum().item<double>();
  const auto* data = static_cast<const kernels::Bf16*>(x.const_data_ptr());
  EXPECT_NEAR(kernels::sum_of_squares(data, x.numel()), want, 1e-12 * want);
}

}  // namespace
}  // namespace ranklab
