// Cells of the grid of chunks hold the pairs that positions say, however the blocks lie in it.
#include "core/spec/attention_cells.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace ranklab {
namespace {

using Chunks = std::map<std::pair<int64_t, int64_t>, int64_t>;

// Pairs of the rank's queries and all keys, one by one.
Chunks counted(int64_t seq_length, int ranks, int rank, SequenceBalance balance, int64_t window) {
  const int64_t chunks = sequence_divisor(ranks, balance), each = seq_length / chunks;
  const auto chunk = [&](int64_t p) { return balance == SequenceBalance::kStripe ? p % chunks : p / each; };
  Chunks out;
  for (const int64_t query : positions_of(sequence_part(seq_length, ranks, rank, balance)))
    for (int64_t key = window > 0 ? std::max<int64_t>(0, query - window + 1) : 0; key <= query; ++key)
      ++out[{chunk(query), chunk(key)}];
  return out;
}

Chunks added(const AttentionCells& cells) {
  Chunks out;
  for (const AttentionCell& cell : cells.cells()) {
    EXPECT_EQ(out.count({cell.query, cell.key}), 0u);
    out[{cell.query, cell.key}] = cell.pairs;
  }
  return out;
}

TEST(AttentionCells, HoldThePairsOfTheirPositions) {
  constexpr int64_t kLength = 96;
  for (const SequenceBalance balance :
       {SequenceBalance::kContiguous, SequenceBalance::kZigzag, SequenceBalance::kStripe}) {
    for (const int ranks : {2, 3, 8}) {
      for (const int64_t window : {0, 1, 10, 40}) {
        for (int rank = 0; rank < ranks; ++rank) {
          SCOPED_TRACE(testing::Message()
                       << static_cast<int>(balance) << ", rank " << rank << " of " << ranks << ", window " << window);
          const auto queries = sequence_part(kLength, ranks, rank, balance);
          AttentionCells hops(kLength, ranks, balance);
          for (int other = 0; other < ranks; ++other) {
            const auto keys = sequence_part(kLength, ranks, other, balance);
            for (const AttentionBlock& block : attention_blocks(queries, keys, window)) hops.add(queries, keys, block);
          }
          EXPECT_EQ(added(hops), counted(kLength, ranks, rank, balance, window));
          if (balance == SequenceBalance::kStripe) continue;
          // All keys at once, as after a gather.
          const std::vector<PositionRun> all = {{0, kLength}};
          AttentionCells gathered(kLength, ranks, balance);
          for (const AttentionBlock& block : attention_blocks(queries, all, window)) gathered.add(queries, all, block);
          EXPECT_EQ(added(gathered), added(hops));
        }
      }
    }
  }
}

TEST(AttentionCells, CostNothingOfALongSequence) {
  constexpr int64_t kLength = int64_t{1} << 30;
  const auto part = sequence_part(kLength, 2, 1, SequenceBalance::kContiguous);
  AttentionCells cells(kLength, 2, SequenceBalance::kContiguous);
  for (const AttentionBlock& block : attention_blocks(part[0], part[0], 0)) cells.add(part, part, block);
  constexpr int64_t kHalf = kLength / 2;
  EXPECT_THAT(cells.cells(), testing::ElementsAre(AttentionCell{1, 1, kHalf * (kHalf + 1) / 2}));
}

}  // namespace
}  // namespace ranklab
