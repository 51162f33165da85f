// The row kernels and products on fp16: those in fp32 on the widened numbers, rounded once.
#include <gtest/gtest.h>

#include <limits>

#include "core/nn/activation.h"
#include "core/nn/attention/attention.h"
#include "core/nn/gemm.h"
#include "core/nn/head_norm.h"
#include "core/nn/kernels/row_kernels_16bit.h"
#include "core/nn/norm.h"
#include "core/nn/rope.h"
#include "core/sim/aten.h"
#include "tests/golden/golden.h"

namespace ranklab {
namespace {

using golden::wave;
using kernels::Fp16;

at::Tensor fp16_wave(at::IntArrayRef shape, double salt, double scale = 1.0) {
  return wave(shape, salt, scale).to(at::kHalf);
}

TEST(Fp16, WidensEveryNumber) {
  for (uint32_t bits = 0; bits < (1u << 16); ++bits) {
    const float wide = kernels::widen(Fp16{static_cast<uint16_t>(bits)});
    const float want = c10::Half(static_cast<uint16_t>(bits), c10::Half::from_bits());
    if (want != want) {
      EXPECT_NE(wide, wide) << bits;
      continue;
    }
    EXPECT_EQ(std::bit_cast<uint32_t>(wide), std::bit_cast<uint32_t>(want)) << bits;
    EXPECT_EQ(kernels::narrow<Fp16>(wide).bits, bits);
  }
}

// The exact middle between two neighbours, and the fp32 numbers next to it; above the largest (65504) the middle is
// 65520.
TEST(Fp16, RoundsAsTheTensorLibraryDoes) {
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const float low = kernels::widen(Fp16{static_cast<uint16_t>(bits)});
    const float high = bits == 0x7bff ? 65536.0f : kernels::widen(Fp16{static_cast<uint16_t>(bits + 1)});
    const uint32_t middle = std::bit_cast<uint32_t>((low + high) / 2);
    for (const uint32_t near : {middle - 1, middle, middle + 1}) {
      for (const uint32_t sign : {0u, 0x80000000u}) {
        const auto between = std::bit_cast<float>(near | sign);
        EXPECT_EQ(kernels::narrow<Fp16>(between).bits, c10::Half(between).x) << between;
      }
    }
  }
  EXPECT_EQ(kernels::narrow<Fp16>(std::numeric_limits<float>::infinity()).bits, 0x7c00);
  EXPECT_EQ(kernels::narrow<Fp16>(-std::numeric_limits<float>::max()).bits, 0xfc00);
  EXPECT_EQ(kernels::narrow<Fp16>(std::numeric_limits<float>::denorm_min()).bits, 0);
  const float nan = kernels::widen(kernels::narrow<Fp16>(std::numeric_limits<float>::quiet_NaN()));
  EXPECT_NE(nan, nan);
}

TEST(Fp16, ANormIsTheRoundedOneOfItsRoundedInput) {
  const at::Tensor x = fp16_wave({70, 3, 40}, 0.1), weight = fp16_wave({40}, 0.2, 0.5);
  const NormOutput narrow = add_rms_norm(x, {}, weight, {1e-5});
  const NormOutput wide = add_rms_norm(x.to(at::kFloat), {}, weight.to(at::kFloat), {1e-5});
  EXPECT_TRUE(at::equal(narrow.normed, wide.normed.to(at::kHalf)));
  EXPECT_EQ(narrow.recipe.inv_rms.scalar_type(), at::kFloat);
  EXPECT_TRUE(at::equal(narrow.recipe.normed(), narrow.normed)) << "recomputed in backward";
  const at::Tensor branch = fp16_wave({70, 3, 40}, 0.7, 3.0);
  EXPECT_TRUE(at::equal(add_rms_norm(x, branch, weight, {1e-5}).sum, x + branch));
}

TEST(Fp16, ANormOfHeadsIsTheRoundedOne) {
  const AttentionShape shape{4, 2, 10};
  const at::Tensor qkv = fp16_wave({70, 3, 80}, 0.1, 3.0), q = fp16_wave({10}, 0.2, 0.5), k = fp16_wave({10}, 0.9, 0.5);
  const auto wide = [](const at::Tensor& x) { return x.to(at::kFloat); };
  const at::Tensor want = head_norm(wide(qkv), shape, {wide(q), wide(k), 1e-5});
  EXPECT_TRUE(at::equal(head_norm(qkv, shape, {q, k, 1e-5}), want.to(at::kHalf)));
}

TEST(Fp16, SwigluIsTheRoundedOne) {
  const at::Tensor gate_up = fp16_wave({33, 3, 94}, 0.1, 20.0);
  EXPECT_TRUE(at::equal(swiglu(gate_up), swiglu(gate_up.to(at::kFloat)).to(at::kHalf)));
}

TEST(Fp16, AttentionIsNearThatInFp32) {
  const AttentionShape shape{4, 2, 8};
  const at::Tensor qkv = fp16_wave({17, 3, 64}, 0.4, 2.0);
  const RopeTable rope = make_rope_table(64, 8, 100.0, at::TensorOptions(at::kFloat));
  const at::Tensor narrow = causal_attention(qkv, shape, rope);
  EXPECT_EQ(narrow.scalar_type(), at::kHalf);
  const at::Tensor wide = causal_attention(qkv.to(at::kFloat), shape, rope);
  EXPECT_LT(golden::relative_error(narrow.to(at::kDouble), wide.to(at::kDouble)), 0.002);
}

TEST(Fp16, AProductIsSummedInFp32AndRoundedOnce) {
  const at::Tensor a = fp16_wave({33, 70}, 0.1, 9.0), b = fp16_wave({41, 70}, 0.5, 9.0).t();
  const at::Tensor product = gemm(a, b);
  EXPECT_EQ(product.scalar_type(), at::kHalf);
  EXPECT_TRUE(at::equal(product, at::mm(a.to(at::kFloat), b.to(at::kFloat)).to(at::kHalf)));
  EXPECT_TRUE(gemm(at::full({1, 2}, 60000.0, at::kHalf), at::ones({2, 1}, at::kHalf)).isinf().item<bool>());
}

TEST(Fp16, SquaresAreSummedInFp64) {
  const at::Tensor x = fp16_wave({5000}, 0.3, 7.0);
  const double want = x.to(at::kDouble).square().sum().item<double>();
  const auto* data = static_cast<const Fp16*>(x.const_data_ptr());
  EXPECT_NEAR(kernels::sum_of_squares(data, x.numel()), want, 1e-12 * want);
}

}  // namespace
}  // namespace ranklab
