// Weights gathered in 8 bits: what every rank gets is the whole weight rounded in its groups, wherever shards are cut;
// other parameters come bit for bit.
#include <gtest/gtest.h>

#include <numeric>
#include <optional>
#include <utility>

#include "core/parallel/data/shard_codec.h"
#include "core/parallel/quantized/operand_rounding.h"
#include "core/precision/recipe.h"
#include "core/sim/aten.h"
#include "tests/cuda/host_rounding.h"
#include "tests/parallel/run_ranks.h"

namespace ranklab {
namespace {

at::Tensor weights_in_bf16(int64_t elements) {
  const RandomStream stream(9, RandomPurpose::kTest, "weights");
  at::Tensor x = at::empty({elements}, at::kFloat);
  stream.fill_normal(0, {x.mutable_data_ptr<float>(), static_cast<size_t>(elements)});
  return x.to(at::kBFloat16);
}

// A norm, a fused matrix of 24 + 8 rows, a matrix, with padding between them.
constexpr int64_t kNorm = 20, kFusedAt = 32, kCols = 24, kRows = 32, kPlainAt = 816, kPlainRows = 10, kElements = 1072;

std::vector<CodedParameter> parameters(const TensorPrecision& precision) {
  return {{.offset = 0, .elements = kNorm, .cols = 1, .row_parts = {}, .precision = {}},
          {.offset = kFusedAt, .elements = kRows * kCols, .cols = kCols, .row_parts = {24, 8}, .precision = precision},
          {.offset = kPlainAt, .elements = kPlainRows * kCols, .cols = kCols, .row_parts = {}, .precision = precision}};
}

void expect_whole_rounded() {
  const TensorPrecision block{.format = e4m3(), .granularity = Granularity::kBlock, .block = 16};
  TensorPrecision tile = block, wide = block, row = block, powers = block;
  tile.granularity = Granularity::kTile;
  wide.granularity = Granularity::kTensor;
  row.granularity = Granularity::kRow;
  row.format = e5m2();
  powers.scale = ScaleRule::kPowerOfTwo;
  const at::Tensor bucket = weights_in_bf16(kElements);
  for (const TensorPrecision& precision : {block, tile, wide, row, powers}) {
    for (const int ranks : {2, 4, 8}) {
      run_ranks(dims_of(ranks, 1), [&](RankContext& context) {
        Communicator& dp = context.comm(Axis::kDp);
        const int64_t share = kElements / ranks;
        const at::Tensor own = bucket.narrow(0, share * dp.rank(), share);
        ShardCodec codec(parameters(precision), kElements, at::kBFloat16, dp);
        codec.agree(own);
        const at::Tensor got = codec.unpack(dp.all_gather(codec.pack(own), codec.rows()));
        EXPECT_EQ(std::accumulate(codec.rows().begin(), codec.rows().end(), int64_t{0}),
                  2 * kNorm + (kRows + kPlainRows) * kCols)
            << "bytes of all";
        EXPECT_TRUE(at::equal(got.narrow(0, 0, kNorm), bucket.narrow(0, 0, kNorm)));
        const auto rounded = [&](int64_t at, int64_t rows, OperandParts parts) {
          const at::Tensor matrix = bucket.narrow(0, at, rows * kCols).view({rows, kCols});
          const RoundedOperand operand = round_operand(matrix, {.precision = precision, .row_parts = std::move(parts)});
          return operand.values.to(at::kBFloat16);
        };
        const bool in_parts =
            precision.granularity == Granularity::kTile || precision.granularity == Granularity::kBlock;
        const OperandParts fused = in_parts ? OperandParts{{0, 24, 0}, {24, 8, 24}} : OperandParts{};
        EXPECT_TRUE(
            at::equal(got.narrow(0, kFusedAt, kRows * kCols).view({kRows, kCols}), rounded(kFusedAt, kRows, fused)))
            << name(precision.granularity) << ", " << ranks << " ranks";
        EXPECT_TRUE(at::equal(got.narrow(0, kPlainAt, kPlainRows * kCols).view({kPlainRows, kCols}),
                              rounded(kPlainAt, kPlainRows, {})))
            << name(precision.granularity) << ", " << ranks << " ranks";
      });
    }
  }
}

TEST(ShardCodec, GathersTheWholeRounded) { expect_whole_rounded(); }
TEST(ShardCodec, GathersTheWholeRoundedOnAGpu) {
  const StepsOfAGpu steps;
  expect_whole_rounded();
}

// Bytes of a GPU are the CPU's, so ranks on either understand each other.
TEST(ShardCodec, BytesOfAGpuAreTheCpus) {
  const TensorPrecision block{.format = e4m3(), .granularity = Granularity::kBlock, .block = 16};
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf, at::kFloat}) {
    const at::Tensor bucket = weights_in_bf16(kElements).to(type);
    run_ranks(dims_of(4, 1), [&](RankContext& context) {
      Communicator& dp = context.comm(Axis::kDp);
      const at::Tensor own = bucket.chunk(4)[dp.rank()];
      const auto packed = [&] {
        ShardCodec codec(parameters(block), kElements, type, dp);
        codec.agree(own);
        return codec.pack(own);
      };
      const at::Tensor want = packed();
      dp.barrier();
      std::optional<StepsOfAGpu> steps;
      if (dp.rank() == 0) steps.emplace();
      dp.barrier();
      EXPECT_TRUE(at::equal(packed(), want)) << dp.rank();
      dp.barrier();
    });
  }
}

}  // namespace
}  // namespace ranklab
