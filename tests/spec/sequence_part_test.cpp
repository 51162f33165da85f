// Which rank has which positions, and the blocks of attention between two ranks: every pair of a query and a key that
// it attends to is in one block, once.
#include "core/spec/sequence_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "core/base/error.h"

namespace ranklab {
namespace {

using ::testing::ElementsAre;
using Kind = AttentionBlock::Kind;

constexpr SequenceBalance kBalances[] = {SequenceBalance::kContiguous, SequenceBalance::kZigzag,
                                         SequenceBalance::kStripe};

TEST(SequencePart, PositionsOfARank) {
  EXPECT_THAT(positions_of(sequence_part(8, 2, 1, SequenceBalance::kContiguous)), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(positions_of(sequence_part(8, 2, 0, SequenceBalance::kZigzag)), ElementsAre(0, 1, 6, 7));
  EXPECT_THAT(positions_of(sequence_part(8, 2, 1, SequenceBalance::kStripe)), ElementsAre(1, 3, 5, 7));
  EXPECT_THAT(sequence_part(8, 2, 1, SequenceBalance::kZigzag), ElementsAre(PositionRun{2, 4}))
      << "neighbours: one run";
}

TEST(SequencePart, EveryPositionHasOneRank) {
  for (const SequenceBalance balance : kBalances) {
    for (const int ranks : {1, 2, 3, 8}) {
      std::vector<int64_t> all;
      for (int rank = 0; rank < ranks; ++rank)
        for (const int64_t position : positions_of(sequence_part(48, ranks, rank, balance))) all.push_back(position);
      std::ranges::sort(all);
      std::vector<int64_t> want(48);
      std::iota(want.begin(), want.end(), 0);
      EXPECT_EQ(all, want);
    }
  }
}

TEST(SequencePart, ALengthThatDoesNotDivideIsRefused) {
  EXPECT_THROW(sequence_part(12, 8, 0, SequenceBalance::kContiguous), Error);
  EXPECT_THROW(sequence_part(8, 8, 0, SequenceBalance::kZigzag), Error) << "two chunks a rank";
}

// The largest number of (query, key) pairs that a rank computes, divided by the mean over the ranks.
double attention_imbalance(int64_t seq_length, int ranks, SequenceBalance balance) {
  int64_t most = 0, sum = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    int64_t pairs = 0;
    for (const int64_t position : positions_of(sequence_part(seq_length, ranks, rank, balance))) pairs += position + 1;
    most = std::max(most, pairs);
    sum += pairs;
  }
  return static_cast<double>(most) * ranks / static_cast<double>(sum);
}

// The published ceilings of ring attention on 8 ranks follow from these: 8 / 15 = 53 % of the ranks' time.
TEST(SequencePart, ZigzagBalancesCausalAttention) {
  EXPECT_NEAR(attention_imbalance(1 << 13, 8, SequenceBalance::kContiguous), 15.0 / 8, 1e-3);
  EXPECT_DOUBLE_EQ(attention_imbalance(1 << 13, 8, SequenceBalance::kZigzag), 1);
  EXPECT_NEAR(attention_imbalance(1 << 13, 8, SequenceBalance::kStripe), 1, 2e-3);
}

bool attends(const AttentionBlock& b, int64_t i, int64_t j) {
  if (b.kind == Kind::kFull) return true;
  if (b.kind == Kind::kCausal) return j <= i;
  return j >= i + b.band.first && j <= i + b.band.last;
}

void expect_every_pair_once(const PositionRun& queries, const PositionRun& keys, int64_t window) {
  std::map<std::pair<int64_t, int64_t>, int> seen;
  for (const AttentionBlock& b : attention_blocks(queries, keys, window)) {
    EXPECT_TRUE(b.kind != Kind::kCausal || b.queries == b.keys);
    int64_t pairs = 0;
    for (int64_t i = 0; i < b.queries; ++i) {
      const int64_t before = pairs;
      for (int64_t j = 0; j < b.keys; ++j) {
        if (!attends(b, i, j)) continue;
        ++seen[{b.query + i, b.key + j}];
        ++pairs;
      }
      EXPECT_GT(pairs, before) << "a query that attends to nothing";
    }
    EXPECT_EQ(b.pairs(), pairs);
  }
  for (int64_t i = 0; i < queries.count; ++i) {
    for (int64_t j = 0; j < keys.count; ++j) {
      const int64_t p = queries.first + i * queries.stride, k = keys.first + j * keys.stride;
      const bool want = k <= p && (window <= 0 || k > p - window);
      const auto found = seen.find({i, j});
      ASSERT_EQ(found == seen.end() ? 0 : found->second, want ? 1 : 0) << "query at " << p << ", key at " << k;
    }
  }
}

TEST(AttentionBlocks, HoldEveryPairOnce) {
  for (const SequenceBalance balance : kBalances) {
    for (const int ranks : {1, 2, 4}) {
      for (const int64_t window : {0, 1, 3, 9, 31, 64}) {
        for (int a = 0; a < ranks; ++a)
          for (int b = 0; b < ranks; ++b)
            for (const PositionRun& queries : sequence_part(32, ranks, a, balance))
              for (const PositionRun& keys : sequence_part(32, ranks, b, balance)) {
                SCOPED_TRACE("window " + std::to_string(window));
                expect_every_pair_once(queries, keys, window);
              }
      }
    }
  }
}

TEST(AttentionBlocks, ALongWindowIsCutIntoFewQueries) {
  expect_every_pair_once({512, 512}, {0, 1024}, 200);
  EXPECT_GT(attention_blocks({512, 512}, {0, 1024}, 200).size(), 2u);
}

TEST(AttentionBlocks, OfAnyLengthsAndDistances) {
  for (int64_t first = -7; first <= 9; ++first)
    for (const int64_t keys : {1, 4, 6})
      for (const int64_t window : {0, 2, 5}) expect_every_pair_once({10 + first, 5}, {10, keys}, window);
}

void expect_every_pair_once(const std::vector<PositionRun>& queries, const std::vector<PositionRun>& keys,
                            int64_t window, const std::vector<int64_t>& documents = {0}) {
  const auto document = [&](int64_t position) { return std::ranges::upper_bound(documents, position); };
  const std::vector<int64_t> at = positions_of(queries), of = positions_of(keys);
  std::map<std::pair<int64_t, int64_t>, int> seen;
  for (const AttentionBlock& b : attention_blocks(queries, keys, window, documents))
    for (int64_t i = 0; i < b.queries; ++i)
      for (int64_t j = 0; j < b.keys; ++j)
        if (attends(b, i, j)) ++seen[{at.at(static_cast<size_t>(b.query + i)), of.at(static_cast<size_t>(b.key + j))}];
  for (const int64_t p : at) {
    for (const int64_t k : of) {
      const bool want = k <= p && (window <= 0 || k > p - window) && document(k) == document(p);
      ASSERT_EQ(seen.contains({p, k}) ? seen.at({p, k}) : 0, want ? 1 : 0) << "query at " << p << ", key at " << k;
    }
  }
}

TEST(AttentionBlocks, OfTwoRanksHoldEveryPairOnce) {
  for (const SequenceBalance balance : kBalances)
    for (const int ranks : {2, 4})
      for (const int64_t window : {0, 3, 9, 31})
        for (int a = 0; a < ranks; ++a)
          for (int b = 0; b < ranks; ++b)
            expect_every_pair_once(sequence_part(32, ranks, a, balance), sequence_part(32, ranks, b, balance), window);
}

TEST(AttentionBlocks, OfDocumentsHoldEveryPairOnce) {
  const std::vector<int64_t> several[] = {{0, 1, 2, 5, 16, 31}, {0, 8, 24}, {0, 3, 4, 29}};
  for (const SequenceBalance balance : kBalances)
    for (const int ranks : {1, 4})
      for (const int64_t window : {0, 3, 9})
        for (int a = 0; a < ranks; ++a)
          for (int b = 0; b < ranks; ++b)
            for (const std::vector<int64_t>& documents : several)
              expect_every_pair_once(sequence_part(32, ranks, a, balance), sequence_part(32, ranks, b, balance), window,
                                     documents);
}

// Positions that do not ascend: two neighbours' stripes, one after the other.
TEST(AttentionBlocks, OfStripesSideBySideHoldEveryPairOnce) {
  const auto side_by_side = [](int first) {
    std::vector<PositionRun> both = sequence_part(32, 4, first, SequenceBalance::kStripe);
    both.push_back(sequence_part(32, 4, first + 1, SequenceBalance::kStripe).front());
    return both;
  };
  for (const int64_t window : {0, 3, 9})
    for (const int a : {0, 2})
      for (const int b : {0, 2})
        for (const std::vector<int64_t>& documents : {std::vector<int64_t>{0}, {0, 5, 16, 31}})
          expect_every_pair_once(side_by_side(a), side_by_side(b), window, documents);
}

// One kernel a hop, and as much work: every rank of a zigzag is done at the same time.
TEST(AttentionBlocks, OfAZigzagAreOneAHop) {
  for (int a = 0; a < 4; ++a) {
    for (int b = 0; b < 4; ++b) {
      const auto blocks = attention_blocks(sequence_part(32, 4, a, SequenceBalance::kZigzag),
                                           sequence_part(32, 4, b, SequenceBalance::kZigzag), 0);
      ASSERT_EQ(blocks.size(), 1u);
      EXPECT_EQ(blocks[0].pairs(), a == b ? 8 * 9 / 2 : 8 * 4);
    }
  }
}

TEST(AttentionBlocks, TheDiagonalOfARankIsATriangleAndThePastARectangle) {
  EXPECT_THAT(attention_blocks({8, 4}, {8, 4}, 0), ElementsAre(AttentionBlock{0, 4, 0, 4, Kind::kCausal}));
  EXPECT_THAT(attention_blocks({8, 4}, {0, 8}, 0), ElementsAre(AttentionBlock{0, 4, 0, 8}));
  EXPECT_TRUE(attention_blocks({0, 4}, {8, 4}, 0).empty());
}

}  // namespace
}  // namespace ranklab
