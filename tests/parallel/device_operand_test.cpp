// Operands rounded by the steps of a GPU are those of the CPU bit for bit, alone and on several ranks; products of
// codes are those of the numbers read back; which products are made of codes is a table.
#include "core/parallel/quantized/device_operand.h"
#include "core/nn/device_random.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/base/error.h"
#include "core/parallel/quantized/hadamard_transform.h"
#include "core/parallel/quantized/quantizer_book.h"
#include "core/parallel/quantized/scaled_product.h"
#include "core/sim/aten.h"
#include "tests/cuda/host_rounding.h"
#include "tests/parallel/operand_cases.h"
#include "tests/parallel/run_ranks.h"

namespace ranklab {
namespace {

const HostRounding kDevice;
const RandomStream kStream(5, RandomPurpose::kStochasticRounding, "layer/dx", 3);

// As a recorded pass rounds: another step is in the stream, and the device reads this one from a tensor.
OperandRounding recorded(OperandRounding how) {
  how.noise.stream = RandomStream(5, RandomPurpose::kStochasticRounding, "layer/dx", 99);
  how.noise.name_key = RandomStream::name_key("layer/dx");
  how.noise.step_key = rounding_key_of(random_offset(/*step=*/3, /*first_sample=*/0, at::kCPU));
  return how;
}

void expect_same(const RoundedOperand& device, const RoundedOperand& want, const std::string& name) {
  const RoundedOperand got = on_host(device);
  if (device.device_amax.defined()) {
    EXPECT_EQ(got.amax, want.amax) << name;
  }
  EXPECT_TRUE(at::equal(got.values.view(at::kInt), want.values.view(at::kInt))) << name;
  EXPECT_EQ(got.scales, want.scales) << name;
  EXPECT_EQ(got.pieces.size(), want.pieces.size()) << name;
}

TEST(DeviceOperand, HasTheBitsOfTheCpu) {
  for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{130, 272}, {5, 18}}) {
    // With the largest number in either of two parts.
    const at::Tensor sample = operand_sample(rows, cols, 1);
    for (const at::Tensor& x : {sample, sample.flip(1)}) {
      for (const OperandCase& c : operand_cases(rows, cols, kStream)) {
        const OperandRounding there = on_device(c.how, at::kCPU);
        expect_same(round_on_device(x, there, kDevice), round_operand(x, c.how), c.name);
        if (c.how.noise.stream)
          expect_same(round_on_device(x, recorded(there), kDevice), round_operand(x, c.how), c.name + ", recorded");
        const at::Tensor narrow = x.to(at::kBFloat16);
        expect_same(round_on_device(narrow, there, kDevice), round_operand(narrow, c.how), c.name + ", bf16");
      }
    }
  }
}

TEST(DeviceOperand, CodesReadBackAreTheValues) {
  const at::Tensor x = operand_sample(48, 64, 2);
  int coded = 0;
  for (OperandCase c : operand_cases(48, 64, kStream)) {
    c.how.codes = true;
    const RoundedOperand operand = round_on_device(x, on_device(c.how, at::kCPU), kDevice);
    EXPECT_EQ(operand.codes.defined(), codes_fit(c.how, 0)) << c.name;
    EXPECT_EQ(operand.values.defined(), !codes_fit(c.how, 0)) << c.name;
    coded += operand.codes.defined() ? 1 : 0;
    expect_same(operand, round_operand(x, c.how), c.name);
  }
  EXPECT_EQ(coded, 3 * 3 * 2) << "three recipes with scales of tensors and rows, three operands, two directions";
}

// Of bf16, with the scales of groups that products on Hopper take: written in one pass, of numbers rounded before, too.
TEST(DeviceOperand, CodesOfGroupsAreTheValues) {
  const HostRounding hopper(kHopperCapability);
  for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{256, 264}, {130, 144}, {1, 16}}) {
    const at::Tensor x = operand_sample(rows, cols, 2).to(at::kBFloat16);
    int coded = 0;
    for (OperandCase c : operand_cases(rows, cols, kStream)) {
      if (!has_scaled_groups(c.how.precision) || !c.how.col_parts.empty()) continue;
      c.how.codes = true;
      const RoundedOperand operand = round_on_device(x, c.how, hopper);
      EXPECT_TRUE(operand.codes.defined()) << c.name;
      ++coded;
      expect_same(operand, round_operand(x, c.how), c.name);
    }
    EXPECT_EQ(coded, 3 * 2 * 2) << "three operands, two directions, also of numbers rounded before";
  }
}

TEST(DeviceOperand, CodesLieBothWaysAndScalesAreKept) {
  for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{48, 64}, {5, 18}}) {
    const at::Tensor x = operand_sample(rows, cols, 2);
    OperandRounding how{.precision = {.format = e4m3()}, .codes = true, .both_ways = true};
    const RoundedOperand both = round_on_device(x, how, kDevice);
    EXPECT_TRUE(at::equal(both.codes.view(at::kByte).t(), both.other_codes.view(at::kByte)));
    how.both_ways = false;
    how.device_scale = both.device_scales;
    how.along = Along::kRows;
    // Larger numbers: their own scale would be another one.
    const RoundedOperand kept = round_on_device(x, how, kDevice), other = round_on_device(2 * x, how, kDevice);
    EXPECT_TRUE(at::equal(kept.codes.view(at::kByte), both.other_codes.view(at::kByte)));
    EXPECT_TRUE(at::equal(other.device_scales, both.device_scales));
  }
}

TEST(DeviceOperand, PartsOnRanksAreThePartsOfTheWhole) {
  const at::Tensor x = operand_sample(64, 96, 3);
  for (const OperandCase& c : operand_cases(64, 96, kStream)) {
    const TensorPrecision& p = c.how.precision;
    if (!c.how.col_parts.empty() || (c.how.noise.stream && c.how.noise.rows.empty())) continue;
    if (p.block > 32) continue;  // parts of this size hold no whole groups
    const at::Tensor want = round_operand(x, c.how).values;
    run_ranks(dims_of(1, 2), [&](RankContext& rank) {
      Communicator& tp = rank.comm(Axis::kTp);
      OperandRounding how = c.how;
      how.rows_group = &tp;
      const int64_t begin = 32 * tp.rank();
      EXPECT_TRUE(
          at::equal(values_of(round_on_device(x.narrow(0, begin, 32), how, kDevice)), want.narrow(0, begin, 32)))
          << c.name;
    });
  }
}

TEST(DeviceOperand, AnOverflowIsSeen) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    at::Tensor x = operand_sample(4, 32, 4);
    x[1][2] = bad;
    const RoundedOperand whole = on_host(round_on_device(x, {.precision = {.format = e4m3()}}, kDevice));
    EXPECT_TRUE(at::isnan(whole.values).all().item<bool>());
    EXPECT_EQ(whole.amax, std::numeric_limits<float>::infinity());
    const TensorPrecision tile{.format = e4m3(), .granularity = Granularity::kTile, .block = 16};
    EXPECT_EQ(at::isnan(round_on_device(x, {.precision = tile}, kDevice).values).sum().item<int64_t>(), 16);
  }
}

TEST(HadamardTransform, ByTensorsHasTheBitsOfTheCpu) {
  const RandomHadamard hadamard(11);
  for (const int64_t rows : {16, 64, 23}) {
    const at::Tensor x = operand_sample(rows, 37, 5);
    EXPECT_TRUE(at::equal(hadamard_transform_by_tensors(hadamard, x), hadamard_transform(hadamard, x))) << rows;
  }
}

TEST(ScaledMmForm, IsWhatTheUnitsCan) {
  const TensorPrecision whole{.format = e4m3()}, whole_e5m2{.format = e5m2()};
  const TensorPrecision row{.format = e4m3(), .granularity = Granularity::kRow};
  const TensorPrecision row_e5m2{.format = e5m2(), .granularity = Granularity::kRow};
  const TensorPrecision tile{.format = e4m3(), .granularity = Granularity::kTile, .block = 128};
  const TensorPrecision square{.format = e4m3(), .granularity = Granularity::kBlock, .block = 128};
  const TensorPrecision short_tile{.format = e4m3(), .granularity = Granularity::kTile, .block = 32};
  const TensorPrecision small{.format = e2m1()};
  TensorPrecision noisy = whole;
  noisy.rounding = Rounding::kStochastic;
  using enum ScaledMmForm;
  EXPECT_EQ(scaled_mm_form(whole, whole, 16, 32, 48, 90), kTensorWise);
  EXPECT_EQ(scaled_mm_form(whole_e5m2, whole, 16, 32, 48, 89), kTensorWise);
  EXPECT_EQ(scaled_mm_form(whole_e5m2, whole_e5m2, 16, 32, 48, 90), kNone);
  EXPECT_EQ(scaled_mm_form(whole, whole, 16, 32, 48, 80), kNone);
  EXPECT_EQ(scaled_mm_form(whole, whole, 16, 32, 48, 0), kNone);
  EXPECT_EQ(scaled_mm_form(row, row, 16, 32, 48, 90), kRowWise);
  EXPECT_EQ(scaled_mm_form(row, row, 16, 32, 48, 89), kNone);
  EXPECT_EQ(scaled_mm_form(row_e5m2, row, 16, 32, 48, 90), kNone);
  EXPECT_EQ(scaled_mm_form(whole, row, 16, 32, 48, 90), kNone);
  for (const TensorPrecision& other : {tile, small, noisy, TensorPrecision{}})
    EXPECT_EQ(scaled_mm_form(other, other, 16, 32, 48, 90), kNone);
  EXPECT_EQ(scaled_mm_form(tile, tile, 16, 128, 48, 90), kGroupWise);
  EXPECT_EQ(scaled_mm_form(tile, square, 16, 512, 48, 90), kGroupWise);
  EXPECT_EQ(scaled_mm_form(square, tile, 16, 512, 48, 90), kGroupWise);
  EXPECT_EQ(scaled_mm_form(tile, square, 16, 128, 48, 90), kNone) << "rows of scales at no multiple of 16 bytes";
  EXPECT_EQ(scaled_mm_form(square, square, 16, 512, 48, 90), kNone);
  EXPECT_EQ(scaled_mm_form(short_tile, short_tile, 16, 128, 48, 90), kNone);
  for (const int other : {80, 89, 100, 120}) EXPECT_EQ(scaled_mm_form(tile, tile, 16, 128, 48, other), kNone);
  EXPECT_EQ(scaled_mm_form(whole, whole, 8, 32, 48, 90), kNone);
  EXPECT_EQ(scaled_mm_form(whole, whole, 16, 40, 48, 90), kNone);
  EXPECT_EQ(scaled_mm_form(whole, whole, 16, 32, 0, 90), kNone);
}

struct Product {
  TensorPrecision left, right;
  RoundedOperand a, b;
  at::Tensor want;  // [32, 48], of the numbers read back in fp64
};

Product product_of(const TensorPrecision& left, const TensorPrecision& right, bool k_first) {
  const auto coded = [&](const TensorPrecision& p, int64_t rows, uint64_t seed) {
    const at::Tensor x = k_first ? operand_sample(64, rows, seed) : operand_sample(rows, 64, seed);
    const Along along = k_first ? Along::kRows : Along::kColumns;
    return round_on_device(x, {.precision = p, .along = along, .codes = true}, kDevice);
  };
  Product p{left, right, coded(left, 32, 6), coded(right, 48, 7), {}};
  const at::Tensor a = values_of(p.a).to(at::kDouble), b = values_of(p.b).to(at::kDouble);
  p.want = k_first ? a.t().mm(b) : a.mm(b.t());
  return p;
}

double error_of(const at::Tensor& got, const at::Tensor& want) {
  return (got.to(at::kDouble) - want).abs().max().item<double>() / want.abs().max().item<double>();
}

const TensorPrecision kWhole{.format = e4m3()}, kWholeE5M2{.format = e5m2()};
const TensorPrecision kTile{.format = e4m3(), .granularity = Granularity::kTile, .block = kScaledGroup};
const TensorPrecision kByRows{.format = e4m3(), .granularity = Granularity::kRow, .scale = ScaleRule::kPowerOfTwo};

// LibTorch's product of codes on a CPU, which knows scales of whole tensors, stands in for the GPU's.
TEST(ScaledProduct, OfCodesIsThatOfTheNumbersReadBack) {
  constexpr int kNoUnits = 0;
  for (const bool k_first : {false, true}) {
    for (const Product& p : {product_of(kWholeE5M2, kWhole, k_first), product_of(kWhole, kWhole, k_first)}) {
      const CodedSide left{p.a, p.left}, right{p.b, p.right};
      EXPECT_LT(error_of(device_product(left, right, kNoUnits, at::kFloat), p.want), 1e-6);
      EXPECT_LT(error_of(device_product(left, right, kHopperCapability, at::kFloat), p.want), 1e-6);
      EXPECT_LT(error_of(device_product(left, right, kNoUnits, at::kBFloat16), p.want), 1e-2);
      EXPECT_EQ(device_product(left, right, kHopperCapability, at::kBFloat16).scalar_type(), at::kBFloat16);
    }
  }
}

// The three products of a layer, twice in turn, so that two microbatches are in flight.
std::vector<at::Tensor> products_of(LinearQuantizer& layer, bool keeps) {
  constexpr int64_t kTokens = 32, kIn = 64, kOut = 48;
  const at::Tensor weight = operand_sample(kOut, kIn, 1).to(at::kBFloat16);
  std::array<KeptRounding, 2> kept;
  const auto of = [&](size_t i) { return keeps ? &kept.at(i) : nullptr; };
  const auto sample = [&](int64_t cols, size_t i) {
    return (operand_sample(kTokens, cols, 2 + i) * (1.0 + 9.0 * static_cast<double>(i))).to(at::kBFloat16);
  };
  std::vector<at::Tensor> products;
  for (const size_t i : {0, 1}) products.push_back(layer.forward(sample(kIn, i), weight, {}, of(i)));
  for (const size_t i : {0, 1}) {
    const at::Tensor grad = sample(kOut, 2 + i);
    products.push_back(layer.input_grad(grad, weight, {}, of(i), /*keeps_grad=*/keeps));
    products.push_back(layer.weight_grad(grad, sample(kIn, i), {}, of(i)));
    EXPECT_FALSE(kept.at(i).grad.codes.defined()) << "taken";
  }
  return products;
}

TEST(KeptRounding, GivesTheBitsOfRoundingAnew) {
  const StepsOfAGpu hopper(kHopperCapability);
  run_ranks(dims_of(1, 1), [&](RankContext& rank) {
    for (PrecisionRecipe recipe : precision_recipes()) {
      // A CPU has no product of codes with scales of rows.
      if (!recipe.linear.quantized() || recipe.linear.activation.granularity == Granularity::kRow) continue;
      recipe.high_precision.clear();
      const std::vector<PolicyModule> modules = {{"layer", {48, 64}}};
      const auto policy = std::make_shared<const PrecisionPolicy>(recipe, PrecisionRules{}, modules);
      QuantizerBook book({.policy = policy, .stats_interval = 0}, rank, /*seed=*/1);
      LinearQuantizer* layer = book.make("layer", {.in = 64, .out = 48}, at::kBFloat16);
      const auto want = products_of(*layer, false), got = products_of(*layer, true);
      for (size_t i = 0; i < want.size(); ++i)
        EXPECT_TRUE(at::equal(got[i], want[i])) << recipe.name << ", product " << i;
    }
  });
}

TEST(ScaledProduct, SumsIn14BitsAreHoppersOwn) {
  const Product p = product_of(kWhole, kWhole, false);
  const auto product = [&](int capability, SumPrecision sum) {
    return device_product({p.a, p.left}, {p.b, p.right}, capability, at::kFloat, sum);
  };
  for (const SumPrecision sum : {SumPrecision::kHopper, SumPrecision::kHopperPromoted}) {
    EXPECT_LT(error_of(product(90, sum), p.want), 1e-6);
    EXPECT_THROW(product(100, sum), Error);
    EXPECT_THROW(product(0, sum), Error) << "no FP8 units";
    EXPECT_THROW(device_product({p.a, kTile}, {p.b, kTile}, 90, at::kFloat, sum), Error) << "over 64";
  }
}

TEST(ScaledProduct, LiesAsTheUnitsReadIt) {
  for (const bool k_first : {false, true}) {
    for (const TensorPrecision& precision : {kWhole, kByRows}) {
      const Product p = product_of(precision, precision, k_first);
      const bool rows = precision.granularity == Granularity::kRow;
      const ScaledMmOperands o = scaled_mm_operands(
          {p.a, p.left}, {p.b, p.right}, rows ? ScaledMmForm::kRowWise : ScaledMmForm::kTensorWise, at::kFloat);
      EXPECT_TRUE(o.a.is_contiguous() && o.b.t().is_contiguous());
      EXPECT_TRUE(o.scale_a.is_contiguous() && o.scale_b.is_contiguous());
      EXPECT_EQ(o.a.sizes(), (at::IntArrayRef{32, 64}));
      EXPECT_EQ(o.b.sizes(), (at::IntArrayRef{64, 48}));
      EXPECT_EQ(o.scale_a.sizes(), rows ? (at::IntArrayRef{32, 1}) : at::IntArrayRef{});
      EXPECT_EQ(o.scale_b.sizes(), rows ? (at::IntArrayRef{1, 48}) : at::IntArrayRef{});
      EXPECT_EQ(o.type, rows ? at::kBFloat16 : at::kFloat);
      const at::Tensor a = o.a.to(at::kDouble) * o.scale_a, b = o.b.to(at::kDouble) * o.scale_b;
      EXPECT_LT(error_of(a.mm(b), p.want), 1e-6);  // what is read back is rounded to fp32
    }
  }
}

// Of groups of 128 on a GPU that has products of them: codes, and scales as its units read them.
TEST(ScaledProduct, OfGroupsLiesAsTheUnitsReadIt) {
  const HostRounding hopper(kHopperCapability);
  const TensorPrecision tile{.format = e4m3(), .granularity = Granularity::kTile, .block = 128};
  const TensorPrecision square{.format = e4m3(), .granularity = Granularity::kBlock, .block = 128};
  constexpr int64_t kM = 256, kK = 512, kN = 384;
  for (const bool k_first : {false, true}) {
    for (const auto& [left, right] : {std::pair{tile, tile}, {tile, square}, {square, tile}}) {
      const auto coded = [&](const TensorPrecision& p, int64_t rows, uint64_t seed) {
        const at::Tensor x = k_first ? operand_sample(kK, rows, seed) : operand_sample(rows, kK, seed);
        const OperandRounding how{.precision = p, .along = k_first ? Along::kRows : Along::kColumns, .codes = true};
        const RoundedOperand operand = round_on_device(x, how, hopper);
        expect_same(operand, round_operand(x, how), "groups");
        return operand;
      };
      const RoundedOperand a = coded(left, kM, 6), b = coded(right, kN, 7);
      const ScaledMmOperands o = scaled_mm_operands({a, left}, {b, right}, ScaledMmForm::kGroupWise, at::kBFloat16);
      EXPECT_TRUE(o.a.is_contiguous() && o.b.t().is_contiguous());
      EXPECT_EQ(o.a.sizes(), (at::IntArrayRef{kM, kK}));
      EXPECT_EQ(o.b.sizes(), (at::IntArrayRef{kK, kN}));
      const auto expect_scales = [](const at::Tensor& scale, const TensorPrecision& p, int64_t rows) {
        const bool tiles = p.granularity == Granularity::kTile;
        EXPECT_EQ(scale.sizes(), (at::IntArrayRef{tiles ? rows : rows / 128, kK / 128}));
        EXPECT_EQ(scale.strides(), tiles ? (at::IntArrayRef{1, rows}) : (at::IntArrayRef{kK / 128, 1}));
      };
      expect_scales(o.scale_a, left, kM);
      expect_scales(o.scale_b.t(), right, kN);
      const auto whole = [](const at::Tensor& scale, int64_t rows) {
        return scale.repeat_interleave(rows / scale.size(0), 0).repeat_interleave(128, 1).to(at::kDouble);
      };
      const at::Tensor got =
          (o.a.to(at::kDouble) * whole(o.scale_a, kM)).mm((o.b.t().to(at::kDouble) * whole(o.scale_b.t(), kN)).t());
      const at::Tensor va = values_of(a).to(at::kDouble), vb = values_of(b).to(at::kDouble);
      EXPECT_LT(error_of(got, k_first ? va.t().mm(vb) : va.mm(vb.t())), 1e-6);
    }
  }
}

// Numbers read back where the units cannot: tiles.
TEST(ScaledProduct, OfTilesIsThatOfTheNumbersReadBack) {
  const TensorPrecision tile{.format = e4m3(), .granularity = Granularity::kTile, .block = 32};
  for (const bool k_first : {false, true}) {
    const Product p = product_of(tile, tile, k_first);
    EXPECT_FALSE(p.a.codes.defined());
    EXPECT_LT(error_of(device_product({p.a, tile}, {p.b, tile}, 90, at::kFloat), p.want), 1e-6);
  }
}

}  // namespace
}  // namespace ranklab
