// The mask belongs to the global element, whatever part of the batch or sequence a rank holds.
#include "core/nn/dropout.h"
#include "core/nn/device_random.h"
#include "core/sim/aten.h"

#include <gtest/gtest.h>

namespace ranklab {
namespace {

constexpr int64_t kSeq = 8, kBatch = 6, kHidden = 10;
const at::Tensor kWhole = at::ones({kSeq, kBatch, kHidden});

DropoutContext dropout_context(int64_t first_sample = 0, int64_t first_position = 0, uint64_t step = 3) {
  return {.seed = 5, .step = step, .first_sample = first_sample, .first_position = first_position, .seq_length = kSeq};
}

TEST(Dropout, EveryLayoutDropsTheSameElements) {
  const at::Tensor whole = dropout_mask(kWhole, "layers.0.mlp.dropout", 0.3, dropout_context());
  for (int64_t rank = 0; rank < 2; ++rank) {
    const at::Tensor samples =
        dropout_mask(kWhole.narrow(1, 0, 3), "layers.0.mlp.dropout", 0.3, dropout_context(rank * 3));
    EXPECT_TRUE(at::equal(samples, whole.narrow(1, rank * 3, 3)));
    const at::Tensor positions =
        dropout_mask(kWhole.narrow(0, 0, 4), "layers.0.mlp.dropout", 0.3, dropout_context(0, rank * 4));
    EXPECT_TRUE(at::equal(positions, whole.narrow(0, rank * 4, 4)));
  }
}

TEST(Dropout, LayersAndStepsDiffer) {
  const at::Tensor mask = dropout_mask(kWhole, "a", 0.5, dropout_context());
  EXPECT_FALSE(at::equal(mask, dropout_mask(kWhole, "b", 0.5, dropout_context())));
  EXPECT_FALSE(at::equal(mask, dropout_mask(kWhole, "a", 0.5, dropout_context(0, 0, 4))));
}

TEST(Dropout, DropsTheStatedShareAndKeepsTheMean) {
  const at::Tensor mask = dropout_mask(at::ones({100, 20, 50}), "a", 0.1, dropout_context());
  EXPECT_NEAR(mask.eq(0).to(at::kDouble).mean().item<double>(), 0.1, 4 * std::sqrt(0.09 / 100000));
  EXPECT_FLOAT_EQ(mask.max().item<float>(), 1.0f / 0.9f);
}

// Rows of ten elements begin inside of Philox' blocks of four, rows of eight at their edges.
TEST(Dropout, OffsetsOnTheDeviceDrawTheSameBits) {
  for (const int64_t hidden : {kHidden, int64_t{8}}) {
    for (const uint64_t step : {0u, 3u, 4000u}) {
      for (const double p : {0.1, 0.5, 1.0 / 3}) {
        const at::Tensor x = at::ones({kSeq, kBatch, hidden}, at::kDouble);
        DropoutContext context = dropout_context(int64_t{1} << 33, 3, step);
        const at::Tensor want = dropout_mask(x, "layers.1", p, context);
        context.offset = random_offset(context.step, context.first_sample, at::kCPU);
        context.step = 77, context.first_sample = 78;  // not read
        EXPECT_TRUE(at::equal(dropout_mask(x, "layers.1", p, context), want)) << hidden << ", " << step << ", " << p;
        EXPECT_TRUE(at::equal(dropout_mask(x.to(at::kBFloat16), "layers.1", p, context), want.to(at::kBFloat16)));
      }
    }
  }
}

// Those of a rank under context parallelism, in a zigzag and in stripes, and some that follow no rule.
TEST(Dropout, PositionsOnTheDeviceDrawTheSameBits) {
  for (const std::vector<int64_t>& positions :
       {std::vector<int64_t>{90, 91, 2, 3, 4, 20, 21, 22}, {90, 91, 1, 5, 9, 13, 17, 21}, {3, 8, 8, 7, 6, 11, 0, 1}}) {
    const at::Tensor x = at::ones({6, kBatch, kHidden}, at::kDouble);
    DropoutContext context = dropout_context(0, 3, 5);
    context.positions = std::make_shared<const std::vector<int64_t>>(positions);
    context.first_position = 2;
    context.seq_length = 128;
    const at::Tensor want = dropout_mask(x, "layers.1", 0.3, context);
    context.offset = random_offset(context.step, context.first_sample, at::kCPU);
    EXPECT_TRUE(at::equal(dropout_mask(x, "layers.1", 0.3, context), want)) << positions[2];
  }
}

// In parts of 4 million elements.
TEST(Dropout, LargeMasksOnTheDeviceAreOfOneStream) {
  const at::Tensor x = at::ones({5, 9, int64_t{1} << 17}, at::kBFloat16);
  DropoutContext context = dropout_context();
  const at::Tensor want = dropout_mask(x, "layers.1", 0.3, context);
  context.offset = random_offset(context.step, context.first_sample, at::kCPU);
  EXPECT_TRUE(at::equal(dropout_mask(x, "layers.1", 0.3, context), want));
}

TEST(Dropout, ProbabilityZeroIsTheInput) { EXPECT_TRUE(dropout(kWhole, "a", 0.0, dropout_context()).is_same(kWhole)); }

}  // namespace
}  // namespace ranklab
