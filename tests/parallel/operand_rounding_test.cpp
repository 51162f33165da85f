// Operands of quantized products: rounded by parts on several ranks they are the parts of the whole tensor rounded, bit
// for bit, in every granularity, direction and cut; and stochastic rounding draws the same numbers in every layout.
#include <gtest/gtest.h>

#include <limits>
#include <utility>

#include "core/parallel/quantized/operand_rounding.h"
#include "core/parallel/tensor/collectives.h"
#include "core/precision/recipe.h"
#include "core/sim/aten.h"
#include "tests/parallel/run_ranks.h"

namespace ranklab {
namespace {

constexpr int64_t kOperandRows = 64, kOperandCols = 96, kOperandRanks = 2;

at::Tensor operand(uint64_t seed) {
  const RandomStream stream(seed, RandomPurpose::kTest, "operand");
  at::Tensor x = at::empty({kOperandRows, kOperandCols}, at::kFloat);
  stream.fill_normal(0, {x.mutable_data_ptr<float>(), static_cast<size_t>(x.numel())});
  return x * at::exp2(at::arange(kOperandCols, at::kFloat).remainder(7) - 3);
}

std::vector<std::pair<std::string, TensorPrecision>> precisions() {
  std::vector<std::pair<std::string, TensorPrecision>> all;
  for (const PrecisionRecipe& recipe : precision_recipes()) {
    if (!recipe.linear.quantized()) continue;
    for (const auto& [role, precision] :
         {std::pair{"x", recipe.linear.activation}, std::pair{"W", recipe.linear.weight},
          std::pair{"dy", recipe.linear.gradient}}) {
      TensorPrecision one = precision;
      if (one.block > 16) one.block = 16;  // so that parts of this size hold whole groups
      all.emplace_back(recipe.name + " " + role, one);
    }
  }
  return all;
}

OperandRounding rounding_of(const TensorPrecision& precision, Along along, const RandomStream& stream) {
  OperandRounding how{.precision = precision, .along = along};
  if (precision.rounding == Rounding::kStochastic) {
    how.noise = {.stream = stream, .columns = kOperandCols};
    for (uint64_t row = 0; row < kOperandRows; ++row) how.noise.rows.push_back(1000 + row);
  }
  if (precision.scale == ScaleRule::kDelayedFp32) how.amax = 40.0F;
  return how;
}

TEST(OperandRounding, PartsOnRanksAreThePartsOfTheWhole) {
  const at::Tensor whole = operand(1);
  const RandomStream stream(5, RandomPurpose::kStochasticRounding, "layer/dx", 3);
  for (const auto& [name, precision] : precisions()) {
    for (const Along along : {Along::kColumns, Along::kRows}) {
      const OperandRounding one_rank = rounding_of(precision, along, stream);
      const at::Tensor want = round_operand(whole, one_rank).values;
      EXPECT_FALSE(at::equal(want, whole)) << name;
      run_ranks(dims_of(1, kOperandRanks), [&, &name = name](RankContext& rank) {
        Communicator& tp = rank.comm(Axis::kTp);
        const int64_t cols = kOperandCols / kOperandRanks, rows = kOperandRows / kOperandRanks, r = tp.rank();
        OperandRounding by_cols = one_rank;
        by_cols.cols_group = &tp;
        by_cols.col_parts = {{0, cols, r * cols}};
        EXPECT_TRUE(
            at::equal(round_operand(whole.narrow(1, r * cols, cols), by_cols).values, want.narrow(1, r * cols, cols)))
            << name << ", columns cut, along " << (along == Along::kColumns ? "columns" : "rows");
        OperandRounding by_rows = one_rank;
        by_rows.rows_group = &tp;
        if (!by_rows.noise.rows.empty())
          by_rows.noise.rows.erase(by_rows.noise.rows.begin(), by_rows.noise.rows.begin() + r * rows);
        EXPECT_TRUE(
            at::equal(round_operand(whole.narrow(0, r * rows, rows), by_rows).values, want.narrow(0, r * rows, rows)))
            << name << ", rows cut, along " << (along == Along::kColumns ? "columns" : "rows");
      });
    }
  }
}

// [gate; up] split over ranks: each rank has a part of both, and each part starts a new group.
TEST(OperandRounding, FusedPartsAreTensorsOfTheirOwn) {
  const at::Tensor whole = operand(2);
  const TensorPrecision block{.format = e4m3(), .granularity = Granularity::kBlock, .block = 16};
  const int64_t half = kOperandCols / 2;
  const OperandParts parts = {{0, half, 0}, {half, half, half}};
  const at::Tensor want = round_operand(whole, {.precision = block, .col_parts = parts}).values;
  const at::Tensor by_hand = at::cat({round_operand(whole.narrow(1, 0, half), {.precision = block}).values,
                                      round_operand(whole.narrow(1, half, half), {.precision = block}).values},
                                     1);
  EXPECT_TRUE(at::equal(want, by_hand));
  const at::Tensor turned = round_operand(whole.t().contiguous(), {.precision = block, .row_parts = parts}).values;
  EXPECT_TRUE(at::equal(turned.t(), want));
  // A block of 20 does not divide 48: tails differ from those of one matrix.
  TensorPrecision odd = block;
  odd.block = 20;
  EXPECT_FALSE(at::equal(round_operand(whole, {.precision = odd, .col_parts = parts}).values,
                         round_operand(whole, {.precision = odd}).values));
}

TEST(OperandRounding, AnOverflowOfOneRankIsSeenByAll) {
  run_ranks(dims_of(1, kOperandRanks), [&](RankContext& rank) {
    for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      at::Tensor x = operand(3).narrow(1, 0, 16).contiguous();
      if (rank.comm(Axis::kTp).rank() == 1) x[0][0] = bad;
      const RoundedOperand all =
          round_operand(x, {.precision = {.format = e4m3()}, .cols_group = &rank.comm(Axis::kTp)});
      EXPECT_TRUE(at::isnan(all.values).all().item<bool>());
      const TensorPrecision tile{.format = e4m3(), .granularity = Granularity::kTile, .block = 16};
      const at::Tensor own = round_operand(x, {.precision = tile}).values;
      EXPECT_EQ(at::isnan(own).sum().item<int64_t>(), rank.comm(Axis::kTp).rank() == 1 ? 16 : 0) << "its tile alone";
    }
  });
}

// Tokens at experts have no position that is the same in every layout; they are identified by their content.
TEST(OperandRounding, RowsWithoutNumbersDrawByTheirContent) {
  const at::Tensor whole = operand(4);
  const RandomStream stream(5, RandomPurpose::kStochasticRounding, "expert/dx", 3);
  const TensorPrecision tile{.format = e2m1(),
                             .granularity = Granularity::kTile,
                             .block = 16,
                             .scale = ScaleRule::kE8M0,
                             .rounding = Rounding::kStochastic};
  const OperandRounding how{.precision = tile, .noise = {.stream = stream, .columns = kOperandCols}};
  const at::Tensor order = at::randperm(kOperandRows, at::kLong);
  const at::Tensor want = round_operand(whole, how).values.index_select(0, order);
  EXPECT_TRUE(at::equal(round_operand(whole.index_select(0, order), how).values, want));
}

TEST(OperandRounding, BFloat16IsRoundedFromItsOwnNumbers) {
  const at::Tensor x = operand(6).to(at::kBFloat16);
  for (const auto& [name, precision] : precisions()) {
    if (precision.rounding == Rounding::kStochastic) continue;
    EXPECT_TRUE(at::equal(round_operand(x, {.precision = precision}).values,
                          round_operand(x.to(at::kFloat), {.precision = precision}).values))
        << name;
  }
}

}  // namespace
}  // namespace ranklab
