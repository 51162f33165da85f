// Two ranks shard a layer of 100 + 28 elements (padding) and one keeps a bucket of its own; states by hand.
#include "viz/model/tables/zero_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/viz/model/zero_sample.h"

namespace ranklab::viz {
namespace {

using samples::zero_run;

TEST(ZeroTable, FollowsTheEvents) {
  const TraceStore store(zero_run(3));
  const ZeroTable table = zero_table(store, 0);
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.stage, 3);
  const ZeroBucketRow& layer = table.rows[0];
  EXPECT_EQ(layer.label, "layers.0");
  EXPECT_EQ(layer.elements, 128);
  EXPECT_EQ(layer.padding, 28);
  EXPECT_EQ(layer.cells[1].shard, 1);
  EXPECT_EQ(table.rows[1].label, "layers.0 experts");
  EXPECT_TRUE(table.rows[1].experts);

  EXPECT_EQ(layer.parameters_at(0, 99, 3), HeldParameters::kShard);
  EXPECT_EQ(layer.parameters_at(0, 100, 3), HeldParameters::kGathering);
  EXPECT_EQ(layer.parameters_at(0, 150, 3), HeldParameters::kGathered);
  EXPECT_EQ(layer.parameters_at(0, 200, 3), HeldParameters::kShard);
  EXPECT_EQ(layer.parameters_at(1, 150, 3), HeldParameters::kShard) << "each rank has its own history";
  EXPECT_EQ(layer.gradients_at(0, 200, 3), HeldGradients::kNone);
  EXPECT_EQ(layer.gradients_at(0, 210, 3), HeldGradients::kPartial);
  EXPECT_EQ(layer.gradients_at(0, 300, 3), HeldGradients::kReducedShard);
  EXPECT_EQ(layer.gradients_at(0, 400, 3), HeldGradients::kNone) << "the update has used them";
  EXPECT_EQ(layer.gradients_at(0, 300, 0), HeldGradients::kReduced);
  // A unit's parameters are gathered and freed in all its buckets; gradients are reported bucket by bucket.
  EXPECT_EQ(table.rows[1].cells[0].history.size(), 3u);
}

TEST(ZeroTable, BytesAreThoseOfTheMoment) {
  const TraceStore store(zero_run(3));
  const ZeroTable table = zero_table(store, 0);
  // Between uses: half of 128 elements of 2 bytes; the experts' 64 elements are the rank's alone.
  EXPECT_EQ(table.bytes_at(0, 50).parameters, 128 + 128);
  EXPECT_EQ(table.bytes_at(0, 150).parameters, 128 + 256 + 128);
  EXPECT_EQ(table.bytes_at(0, 50).optimizer, 64 * 12 + 64 * 12);
  EXPECT_EQ(table.bytes_at(0, 50).gradients, 0);
  EXPECT_EQ(table.bytes_at(0, 250).gradients, 256);
  EXPECT_EQ(table.bytes_at(0, 350).gradients, 128);
  EXPECT_EQ(table.elements(0), 164);
}

TEST(ZeroTable, GradientsMayBeWiderThanParameters) {
  const TraceStore store(zero_run(2, 4));
  const ZeroTable table = zero_table(store, 0);
  EXPECT_EQ(table.bytes_at(0, 250).gradients, 4 * 128);
  EXPECT_EQ(table.bytes_at(0, 350).gradients, 4 * 64);
  EXPECT_EQ(table.bytes_at(0, 350).parameters, 2 * (100 + 64));
  EXPECT_EQ(table.bytes_of_stage(1, 0).gradients, 4 * (100 + 64));
}

TEST(ZeroTable, StagesBesideEachOther) {
  const TraceStore store(zero_run(1));
  const ZeroTable table = zero_table(store, 0);
  const auto held = [&](int stage) { return table.bytes_of_stage(1, stage).together(); };
  EXPECT_EQ(held(0), 16 * (100 + 64));
  EXPECT_EQ(held(1), 4 * 100 + 12 * 50 + 16 * 64);
  EXPECT_EQ(held(2), 2 * 100 + 14 * 50 + 16 * 64);
  EXPECT_EQ(held(3), 16 * 50 + 16 * 64);
  EXPECT_EQ(table.rows[0].parameters_at(0, 150, table.stage), HeldParameters::kWhole);
  EXPECT_THAT(zero_text(store, table), ::testing::HasSubstr("1 (run)"));
}

TEST(ZeroTable, OfATraceWithoutBucketsIsEmpty) {
  EXPECT_TRUE(zero_table(TraceStore(), 0).empty());
  EXPECT_TRUE(zero_table(TraceStore(samples::zero_run(3)), 7).empty());
  EXPECT_THAT(zero_text(TraceStore(), {}), ::testing::HasSubstr("no buckets"));
}

// As in a pipeline whose ranks have two stages each: buckets of the same name have other sizes on other ranks.
TEST(ZeroTable, BucketsOfOneNameMayHaveDifferentSizes) {
  TraceFile file = zero_run(0);
  for (std::vector<double>& numbers : file.ranks[1].arrays)
    if (numbers[0] == 64) numbers[0] = 48;
  const TraceStore store(std::move(file));
  const ZeroTable table = zero_table(store, 0);
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(table.bytes_at(0, 50).parameters, 2 * (100 + 64));
  EXPECT_EQ(table.bytes_at(1, 50).parameters, 2 * (100 + 48));
}

}  // namespace
}  // namespace ranklab::viz
