#include "core/spec/slowest_context_rank.h"

#include <gtest/gtest.h>

namespace ranklab {
namespace {

// All of a zigzag attend to as many keys; in order, ranks in the middle have two runs of queries and two triangles.
TEST(SlowestContextRank, HasTheMostPairsThenBlocksThenQueries) {
  const auto slowest = [](SequenceBalance balance, bool in_order) {
    return slowest_rank(64, 4, balance, {{.in_order = in_order}});
  };
  EXPECT_EQ(slowest(SequenceBalance::kContiguous, true), 3);
  EXPECT_EQ(slowest(SequenceBalance::kStripe, true), 3);
  EXPECT_EQ(slowest(SequenceBalance::kZigzag, false), 3) << "merges every hop";
  const int middle = slowest(SequenceBalance::kZigzag, true);
  EXPECT_TRUE(middle == 1 || middle == 2) << middle;
}

// Of a window the first positions see less than all others; without one the last see most.
TEST(SlowestContextRank, IsThatOfTheWindowsOfTheLayers) {
  std::vector<AttentionOfLayers> layers = {{.window = 4}};
  EXPECT_EQ(slowest_rank(64, 4, SequenceBalance::kContiguous, layers), 1) << "all but rank 0 attend to as many keys";
  layers.push_back({});
  EXPECT_EQ(slowest_rank(64, 4, SequenceBalance::kContiguous, layers), 3);
}

// Chunks as long as a rank's part make contiguous ranks alike; of two ranks with a chunk the second has most keys.
TEST(SlowestContextRank, IsThatOfTheChunksOfTheLayers) {
  EXPECT_EQ(slowest_rank(64, 4, SequenceBalance::kContiguous, {{.chunk = 16}}), 0);
  EXPECT_EQ(slowest_rank(64, 4, SequenceBalance::kContiguous, {{.chunk = 32}}), 1);
}

// Of two pairs of neighbours the first has the ends of the sequence, whose queries see two runs of the others' keys.
TEST(SlowestContextRank, IsOneOfNeighboursThatExchangedHeads) {
  const std::vector<AttentionOfLayers> layers = {{.window = 16, .in_order = false, .joined = 2}};
  EXPECT_EQ(slowest_rank(32, 4, SequenceBalance::kZigzag, layers, SlowestBy::kBlocks), 0);
}

}  // namespace
}  // namespace ranklab
