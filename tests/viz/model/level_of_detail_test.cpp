#include "viz/model/level_of_detail.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/viz/model/make_trace.h"

namespace ranklab::viz {
namespace {

// `count` slices of 8 ns every 10 ns, F and BW in turn; BW takes 9.
TraceStore many(int count) {
  Tracer tracer(0, "", size_t{1} << 21);
  for (int i = 0; i < count; ++i)
    tracer.record(samples::compute(tracer, i % 2 == 0 ? "F" : "BW", 10 * i, 10 * i + 8 + i % 2, 0, i));
  return TraceStore(samples::file_of({tracer.take()}));
}

TEST(LevelOfDetail, WideSlicesAreDrawnOneByOne) {
  const TraceStore store = many(100);
  std::vector<LodBlock> blocks;
  level_of_detail(store.rank(0).rows[0], {100, 200}, 1000, blocks);
  ASSERT_EQ(blocks.size(), 10U);
  EXPECT_FLOAT_EQ(blocks[0].x0, 0);
  EXPECT_FLOAT_EQ(blocks[0].x1, 80);
  EXPECT_EQ(blocks[0].event, 10U);
  EXPECT_EQ(blocks[0].paint, Paint::kForward);
  EXPECT_FLOAT_EQ(blocks[9].x1, 990);
  EXPECT_FALSE(blocks[9].merged());
}

TEST(LevelOfDetail, ClipsAtBothEdges) {
  const TraceStore store = many(100);
  std::vector<LodBlock> blocks;
  level_of_detail(store.rank(0).rows[0], {105, 113}, 800, blocks);
  ASSERT_EQ(blocks.size(), 2U);
  EXPECT_FLOAT_EQ(blocks[0].x0, 0);
  EXPECT_FLOAT_EQ(blocks[0].x1, 300);
  EXPECT_FLOAT_EQ(blocks[1].x0, 500);
  EXPECT_FLOAT_EQ(blocks[1].x1, 800);
}

// However many there are: every slice is in one block, blocks do not overlap, and there is about one a pixel.
TEST(LevelOfDetail, AMillionSlicesAreAThousandBlocks) {
  const TraceStore store = many(1'000'000);
  std::vector<LodBlock> blocks;
  level_of_detail(store.rank(0).rows[0], store.range(), 1000, blocks);
  EXPECT_LE(blocks.size(), 1001U);
  uint64_t slices = 0;
  float reached = -1;
  for (const LodBlock& block : blocks) {
    slices += block.count;
    EXPECT_GE(block.x0, reached - 0.01F);
    reached = block.x1;
    if (block.count > 2) {
      EXPECT_EQ(block.paint, Paint::kBackward);  // 9 ns of 17
    }
  }
  EXPECT_EQ(slices, 1'000'000U);
  const size_t capacity = blocks.capacity();
  blocks.clear();
  level_of_detail(store.rank(0).rows[0], store.range(), 1000, blocks);
  EXPECT_EQ(blocks.capacity(), capacity);
}

TEST(LevelOfDetail, AWideSliceEndsARun) {
  Tracer tracer(0, "");
  for (int i = 0; i < 5; ++i) tracer.record(samples::compute(tracer, "W", i, i + 1));
  tracer.record(samples::compute(tracer, "F", 5, 100));
  const TraceStore store(samples::file_of({tracer.take()}));
  std::vector<LodBlock> blocks;
  level_of_detail(store.rank(0).rows[0], {0, 100}, 10, blocks);
  ASSERT_EQ(blocks.size(), 2U);
  EXPECT_EQ(blocks[0].count, 5U);
  EXPECT_EQ(blocks[0].paint, Paint::kWeightGrad);
  EXPECT_EQ(blocks[1].count, 1U);
  EXPECT_EQ(blocks[1].paint, Paint::kForward);
}

TEST(LevelOfDetail, NothingForAnEmptyWindow) {
  const TraceStore store = many(10);
  std::vector<LodBlock> blocks;
  level_of_detail(store.rank(0).rows[0], {5, 5}, 100, blocks);
  level_of_detail(store.rank(0).rows[0], {0, 100}, 0, blocks);
  EXPECT_TRUE(blocks.empty());
}

}  // namespace
}  // namespace ranklab::viz
