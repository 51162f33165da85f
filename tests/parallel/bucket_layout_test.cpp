// Buckets that ranks shard: every element has one owner, pieces begin where vectors of the whole parameter begin,
// and parameters of several pipeline ranks are cut alike by all holders.
#include "core/parallel/data/bucket_layout.h"

#include <gtest/gtest.h>

namespace ranklab {
namespace {

std::vector<BucketItem> uneven_items() {
  return {{.name = "a", .elements = 1},
          {.name = "b", .elements = 16},
          {.name = "c", .elements = 333},
          {.name = "d", .elements = 17, .sum_over_tp = true},
          {.name = "e", .elements = 1000}};
}

TEST(BucketLayout, FillsInReverseOrderAndSumsOverTpLast) {
  const auto buckets = lay_out_buckets(uneven_items(), 1 << 20, 1);
  ASSERT_EQ(buckets.size(), 2u);
  std::vector<size_t> order;
  for (const BucketPlace& place : buckets[0].places) order.push_back(place.item);
  EXPECT_EQ(order, (std::vector<size_t>{4, 2, 1, 0}));
  EXPECT_EQ(buckets[0].elements, 1008 + 336 + 16 + 16);
  EXPECT_EQ(buckets[0].padding(), 8 + 3 + 15);
  EXPECT_TRUE(buckets[1].sum_over_tp);
  EXPECT_EQ(lay_out_buckets(uneven_items(), 336 * 4 + 1008 * 4, 1)[0].places.size(), 2u);
}

TEST(BucketLayout, EveryElementHasOneOwnerAndPiecesBeginOnLines) {
  const std::vector<BucketItem> items = uneven_items();
  for (const int shards : {2, 3, 8, 64}) {
    std::vector<int64_t> next(items.size(), 0);
    for (const BucketLayout& bucket : lay_out_buckets(items, 2000, shards)) {
      ASSERT_EQ(bucket.elements % (shards * kBucketLineElements), 0);
      const int64_t length = bucket.elements / shards;
      for (int shard = 0; shard < shards; ++shard) {
        for (const ShardPiece& piece : pieces_of(bucket, shards, shard)) {
          EXPECT_EQ(piece.begin, next[piece.item]) << "ranks own one part after another";
          EXPECT_EQ(piece.begin % kBucketLineElements, 0);
          EXPECT_GT(piece.elements(), 0);
          EXPECT_LE(piece.offset + piece.elements(), length);
          next[piece.item] = piece.end;
        }
      }
    }
    for (size_t i = 0; i < items.size(); ++i) EXPECT_EQ(next[i], items[i].elements);
  }
}

TEST(BucketLayout, HoldersOfTheSameParametersCutThemAlike) {
  const std::vector<int> both = {0, 1};
  const std::vector<BucketItem> first = {{.name = "t1", .elements = 40, .pipeline_ranks = both},
                                         {.name = "x", .elements = 500},
                                         {.name = "t2", .elements = 70, .pipeline_ranks = both}};
  const std::vector<BucketItem> last = {{.name = "t2", .elements = 70, .pipeline_ranks = both},
                                        {.name = "y", .elements = 77},
                                        {.name = "z", .elements = 99},
                                        {.name = "t1", .elements = 40, .pipeline_ranks = both}};
  const auto owned = [](const std::vector<BucketItem>& items, int shard) {
    std::vector<std::tuple<std::string, int64_t, int64_t>> pieces;
    for (const BucketLayout& bucket : lay_out_buckets(items, 1 << 20, 4)) {
      for (const ShardPiece& piece : pieces_of(bucket, 4, shard)) {
        if (items[piece.item].pipeline_ranks.empty()) continue;
        pieces.emplace_back(items[piece.item].name, piece.begin, piece.end);
      }
    }
    return pieces;
  };
  for (int shard = 0; shard < 4; ++shard) EXPECT_EQ(owned(first, shard), owned(last, shard));
  EXPECT_EQ(owned(first, 0).size(), 1u);
}

}  // namespace
}  // namespace ranklab
