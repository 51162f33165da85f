// Where there is a GPU: operands rounded on it are those of the CPU bit for bit, in every recipe, and the three
// products of a quantized linear layer are those of simulated ranks but for the rounding of bf16.
#include <gtest/gtest.h>

#include <array>

#include "backends/cuda/cuda_backend.h"
#include "core/parallel/quantized/device_operand.h"
#include "core/parallel/quantized/quantizer_book.h"
#include "core/parallel/quantized/scaled_product.h"
#include "core/sim/aten.h"
#include "tests/parallel/operand_cases.h"
#include "tests/parallel/run_ranks.h"

namespace ranklab {
namespace {

const RandomStream kStream(5, RandomPurpose::kStochasticRounding, "layer/dx", 3);

TEST(CudaRounding, HasTheBitsOfTheCpu) {
  std::string why_not;
  if (!cuda_backend_available(&why_not)) GTEST_SKIP() << why_not;
  for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{130, 272}, {5, 18}, {1024, 512}, {1000, 264}}) {
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      const at::Tensor x = operand_sample(rows, cols, 1).to(type), there = x.to(at::kCUDA);
      for (OperandCase c : operand_cases(rows, cols, kStream)) {
        const RoundedOperand want = round_operand(x, c.how);
        for (const bool codes : {false, true}) {
          c.how.codes = codes;
          const RoundedOperand got = on_host(round_operand(there, on_device(c.how, at::kCUDA)));
          EXPECT_TRUE(at::equal(got.values.view(at::kInt), want.values.view(at::kInt))) << c.name;
          if (c.how.precision.granularity == Granularity::kTensor) {
            EXPECT_EQ(got.amax, want.amax) << c.name;
          }
          EXPECT_EQ(got.scales, want.scales) << c.name;
        }
      }
    }
  }
}

// Every bf16 number up to the format's largest, with the scale 1: also subnormal ones, ties and the zero below zero.
TEST(CudaRounding, ConvertsEveryNumber) {
  std::string why_not;
  if (!cuda_backend_available(&why_not)) GTEST_SKIP() << why_not;
  at::Tensor all = at::arange(1 << 16, at::kInt).to(at::kShort).view(at::kBFloat16).view({256, 256}).clone();
  for (const NumberFormat* format : {e4m3(), e5m2()}) {
    const auto largest = static_cast<float>(format->largest());
    const at::Tensor x = at::where(all.to(at::kFloat).abs() <= largest, all, at::full({}, largest, at::kBFloat16));
    const OperandRounding how{.precision = {.format = format}, .codes = true};
    const RoundedOperand got = on_host(round_operand(x.to(at::kCUDA), how)), want = round_operand(x, how);
    EXPECT_EQ(got.scales, want.scales);
    EXPECT_TRUE(at::equal(got.values.view(at::kInt), want.values.view(at::kInt))) << format->name;
  }
}

TEST(CudaRounding, CodesLieBothWaysAndScalesAreKept) {
  std::string why_not;
  if (!cuda_backend_available(&why_not)) GTEST_SKIP() << why_not;
  for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{1024, 512}, {1000, 264}, {5, 18}}) {
    const at::Tensor x = operand_sample(rows, cols, 1).to(at::kBFloat16).to(at::kCUDA);
    OperandRounding how{.precision = {.format = e4m3()}, .codes = true, .both_ways = true};
    const RoundedOperand both = round_operand(x, how);
    EXPECT_TRUE(at::equal(both.codes.view(at::kByte).t(), both.other_codes.view(at::kByte)));
    how.device_scale = both.device_scales;
    how.along = Along::kRows;
    how.both_ways = false;
    EXPECT_TRUE(at::equal(round_operand(x, how).codes.view(at::kByte), both.other_codes.view(at::kByte)));
  }
}

using Products = std::array<at::Tensor, 3>;

Products products_of(const PrecisionRecipe& recipe, at::Device device, RankContext& rank) {
  constexpr int64_t kTokens = 256, kIn = 1024, kOut = 512;  // multiples of 512, as products with scales of squares want
  const auto sample = [&](int64_t rows, int64_t cols, uint64_t seed) {
    return operand_sample(rows, cols, seed).to(at::kBFloat16).to(device);
  };
  const std::vector<PolicyModule> modules = {{"layer", {kOut, kIn}}};
  const auto policy = std::make_shared<const PrecisionPolicy>(recipe, PrecisionRules{}, modules);
  QuantizerBook book({.policy = policy, .stats_interval = 0}, rank, /*seed=*/1);
  LinearQuantizer* layer = book.make("layer", {.in = kIn, .out = kOut}, at::kBFloat16);
  const at::Tensor x = sample(kTokens, kIn, 1), weight = sample(kOut, kIn, 2), grad = sample(kTokens, kOut, 3);
  return {layer->forward(x, weight, {}).cpu(), layer->input_grad(grad, weight, {}).cpu(),
          layer->weight_grad(grad, x, {}).cpu()};
}

TEST(CudaRounding, ProductsAreThoseOfSimulatedRanks) {
  std::string why_not;
  if (!cuda_backend_available(&why_not)) GTEST_SKIP() << why_not;
  constexpr double kBf16 = 1.0 / 64;  // of the largest result: operands and results are rounded to bf16
  run_ranks(dims_of(1, 1), [&](RankContext& rank) {
    for (PrecisionRecipe recipe : precision_recipes()) {
      if (!recipe.linear.quantized()) continue;
      recipe.high_precision.clear();
      const Products want = products_of(recipe, at::kCPU, rank), got = products_of(recipe, at::kCUDA, rank);
      for (size_t i = 0; i < want.size(); ++i) {
        const at::Tensor wide = want[i].to(at::kDouble);
        const double size = wide.abs().max().item<double>();
        EXPECT_GT(size, 0) << recipe.name;
        EXPECT_LT((got[i].to(at::kDouble) - wide).abs().max().item<double>(), kBf16 * size)
            << recipe.name << ", product " << i;
      }
    }
  });
}

// Hopper's own sums are less exact than those that move to fp32, and both are near what the numbers give.
TEST(CudaRounding, SumsOfHoppersUnitsAreNearAndCoarser) {
  std::string why_not;
  if (!cuda_backend_available(&why_not)) GTEST_SKIP() << why_not;
  const int capability = device_rounding()->capability();
  if (capability != kHopperCapability) GTEST_SKIP() << "a GPU of compute capability " << capability;
  const TensorPrecision whole{.format = e4m3()};
  const auto coded = [&](int64_t rows, uint64_t seed) {
    return round_operand(operand_sample(rows, 4096, seed).to(at::kCUDA), {.precision = whole, .codes = true});
  };
  const RoundedOperand a = coded(128, 1), b = coded(256, 2);
  const at::Tensor want = values_of(a).to(at::kDouble).mm(values_of(b).to(at::kDouble).t());
  const auto error = [&](SumPrecision sum) {
    const at::Tensor got = device_product({a, whole}, {b, whole}, capability, at::kFloat, sum).to(at::kDouble);
    return (got - want).abs().max().item<double>() / want.abs().max().item<double>();
  };
  EXPECT_LT(error(SumPrecision::kHopper), 1e-2);
  EXPECT_GT(error(SumPrecision::kHopper), error(SumPrecision::kFp32));
}

}  // namespace
}  // namespace ranklab
