// Buckets that ranks shard: every element has one owner, pieces begin where vectors of the whole parameter begin,
// and parameters of several pipeline ranks are cut alike by all holders.
#include "core/parallel/data/bucket_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

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

std::vector<BucketItem> matrices(MatrixBuckets kind, const std::vector<int>& holders = {}) {
  std::vector<BucketItem> items;
  for (const int64_t elements : {900, 300, 1200, 500, 700, 100, 1100, 400, 800, 1000, 600, 200})
    items.push_back(
        {.name = "m" + std::to_string(elements), .elements = elements, .pipeline_ranks = holders, .matrix = kind});
  items.push_back({.name = "embedding", .elements = 5000});
  return items;
}

TEST(BucketLayout, MatricesApartHaveBucketsOfTheirOwn) {
  for (const int shards : {1, 4}) {
    for (const MatrixBuckets kind : {MatrixBuckets::kApart, MatrixBuckets::kWhole}) {
      const std::vector<BucketItem> items = matrices(kind);
      size_t seen = 0;
      for (const BucketLayout& bucket : lay_out_buckets(items, 8000, shards)) {
        for (const BucketPlace& place : bucket.places) EXPECT_EQ(items[place.item].matrix, bucket.matrix);
        seen += bucket.places.size();
      }
      EXPECT_EQ(seen, items.size());
    }
  }
}

TEST(BucketLayout, NoShardEndsWithinAWholeMatrix) {
  const std::vector<BucketItem> items = matrices(MatrixBuckets::kWhole);
  for (const int shards : {2, 3, 4, 16}) {
    SCOPED_TRACE(shards);
    std::vector<int> owners(items.size(), 0);
    for (const BucketLayout& bucket : lay_out_buckets(items, 8000, shards)) {
      ASSERT_EQ(bucket.elements % (shards * kBucketLineElements), 0);
      for (int shard = 0; shard < shards; ++shard) {
        int64_t end = 0;
        for (const ShardPiece& piece : pieces_of(bucket, shards, shard)) {
          if (items[piece.item].matrix != MatrixBuckets::kWhole) continue;
          ++owners[piece.item];
          EXPECT_EQ(piece.elements(), items[piece.item].elements);
          EXPECT_GE(piece.offset, end) << "pieces overlap";
          end = piece.offset + piece.elements();
        }
      }
      const double padding = static_cast<double>(bucket.padding()) / static_cast<double>(bucket.elements);
      if (bucket.matrix == MatrixBuckets::kWhole && shards <= 4) {
        EXPECT_LT(padding, 0.25);
      }
    }
    for (size_t i = 0; i + 1 < items.size(); ++i) EXPECT_EQ(owners[i], 1) << items[i].name;
  }
}

// Whatever the arrangement of a rank's other parameters.
TEST(BucketLayout, HoldersOfTheSameWholeMatricesShardThemAlike) {
  const std::vector<BucketItem> first = matrices(MatrixBuckets::kWhole, {0, 1});
  std::vector<BucketItem> last = first;
  std::reverse(last.begin(), last.end());
  last.push_back({.name = "own", .elements = 3000, .matrix = MatrixBuckets::kWhole});
  const auto owned = [](const std::vector<BucketItem>& items, int shard) {
    std::set<std::string> names;
    for (const BucketLayout& bucket : lay_out_buckets(items, 4000, 4))
      for (const ShardPiece& piece : pieces_of(bucket, 4, shard))
        if (!items[piece.item].pipeline_ranks.empty()) names.insert(items[piece.item].name);
    return names;
  };
  for (int shard = 0; shard < 4; ++shard) EXPECT_EQ(owned(first, shard), owned(last, shard));
}

}  // namespace
}  // namespace ranklab
