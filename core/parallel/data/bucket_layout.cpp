#include "core/parallel/data/bucket_layout.h"

#include <algorithm>
#include <map>
#include <set>

namespace ranklab {
namespace {

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

using Holders = std::vector<int>;

// The properties that items of the same bucket share; `holders` null: any.
struct Family {
  bool sum_over_tp = false;
  MatrixBuckets matrix = MatrixBuckets::kMixed;
  const Holders* holders = nullptr;

  bool has(const BucketItem& item) const {
    return item.sum_over_tp == sum_over_tp && item.matrix == matrix &&
           (holders == nullptr || item.pipeline_ranks == *holders);
  }
};

// The family's items, in the order in which they fill buckets.
std::vector<size_t> members(const std::vector<BucketItem>& items, const Family& family) {
  const Holders* holders = family.holders;
  std::vector<size_t> order;
  for (size_t i = items.size(); i-- > 0;) {
    if (family.has(items[i])) order.push_back(i);
  }
  if (holders != nullptr && !holders->empty())
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return items[a].name > items[b].name; });
  return order;
}

void fill(const std::vector<BucketItem>& items, const std::vector<size_t>& order, int64_t bucket_bytes,
          std::vector<BucketLayout>& buckets) {
  const BucketItem* previous = nullptr;
  for (const size_t i : order) {
    const BucketItem& item = items[i];
    const int64_t element = size_bytes(item.dtype);
    const bool bounded = !item.sum_over_tp && item.unit.empty();
    const bool fits = previous != nullptr && previous->dtype == item.dtype && previous->unit == item.unit &&
                      (!bounded || (item.elements + buckets.back().elements) * element <= bucket_bytes);
    if (!fits) {
      buckets.push_back({.places = {},
                         .element_bytes = element,
                         .sum_over_tp = item.sum_over_tp,
                         .unit = item.unit,
                         .matrix = item.matrix});
    }
    BucketLayout& bucket = buckets.back();
    bucket.places.push_back({.item = i, .offset = bucket.elements, .elements = item.elements});
    bucket.elements += round_up(item.elements, kBucketLineElements);
    previous = &item;
  }
}

// The end of the run of items in `order`, from `begin` on, that form one bucket of whole matrices.
size_t end_of_wholes(const std::vector<BucketItem>& items, const std::vector<size_t>& order, size_t begin,
                     int64_t bucket_bytes, int shards) {
  int64_t sum = 0, largest = 0;
  for (size_t at = begin; at < order.size(); ++at) {
    const BucketItem& item = items[order[at]];
    if (item.dtype != items[order[begin]].dtype) return at;
    sum += item.elements;
    largest = std::max(largest, item.elements);
    if (sum * size_bytes(item.dtype) >= bucket_bytes && sum >= kWholesPerShard * shards * largest) return at + 1;
  }
  return order.size();
}

// Lays whole items out in shards of equal length.
BucketLayout lay_out_wholes(const std::vector<BucketItem>& items, const std::vector<size_t>& in, int shards) {
  const BucketItem& first = items[in[0]];
  BucketLayout bucket{
      .places = {}, .element_bytes = size_bytes(first.dtype), .sum_over_tp = first.sum_over_tp, .matrix = first.matrix};
  std::vector<size_t> by_size = in;
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](size_t a, size_t b) { return items[a].elements > items[b].elements; });
  std::vector<int64_t> length(static_cast<size_t>(shards), 0);
  std::map<size_t, size_t> shard_of;
  for (const size_t i : by_size) {
    const auto emptiest = std::min_element(length.begin(), length.end());
    shard_of[i] = static_cast<size_t>(emptiest - length.begin());
    *emptiest += round_up(items[i].elements, kBucketLineElements);
  }
  const int64_t longest = *std::max_element(length.begin(), length.end());
  std::vector<int64_t> next(length.size(), 0);
  for (const size_t i : in) {
    int64_t& offset = next[shard_of[i]];
    bucket.places.push_back(
        {.item = i, .offset = static_cast<int64_t>(shard_of[i]) * longest + offset, .elements = items[i].elements});
    offset += round_up(items[i].elements, kBucketLineElements);
  }
  bucket.elements = longest * shards;
  return bucket;
}

void fill_wholes(const std::vector<BucketItem>& items, const std::vector<size_t>& order, int64_t bucket_bytes,
                 int shards, std::vector<BucketLayout>& buckets) {
  for (size_t begin = 0; begin < order.size();) {
    const size_t end = end_of_wholes(items, order, begin, bucket_bytes, shards);
    const auto at = [&](size_t index) { return order.begin() + static_cast<std::ptrdiff_t>(index); };
    buckets.push_back(lay_out_wholes(items, {at(begin), at(end)}, shards));
    begin = end;
  }
}

}  // namespace

int64_t BucketLayout::padding() const {
  int64_t rest = elements;
  for (const BucketPlace& place : places) rest -= place.elements;
  return rest;
}

std::vector<BucketLayout> lay_out_buckets(const std::vector<BucketItem>& items, int64_t bucket_bytes, int shards) {
  std::vector<BucketLayout> buckets;
  std::set<Holders> all_holders;
  for (const BucketItem& item : items) all_holders.insert(item.pipeline_ranks);
  const auto add = [&](const Family& family) {
    const std::vector<size_t> order = members(items, family);
    if (family.matrix == MatrixBuckets::kWhole && shards > 1)
      return fill_wholes(items, order, bucket_bytes, shards, buckets);
    fill(items, order, bucket_bytes, buckets);
  };
  for (const bool sum_over_tp : {false, true}) {
    for (const MatrixBuckets matrix : {MatrixBuckets::kApart, MatrixBuckets::kWhole, MatrixBuckets::kMixed}) {
      if (shards == 1) {
        add({sum_over_tp, matrix});
        continue;
      }
      for (const Holders& holders : all_holders) add({sum_over_tp, matrix, &holders});
    }
  }
  if (shards == 1) return buckets;
  for (BucketLayout& bucket : buckets) bucket.elements = round_up(bucket.elements, kBucketLineElements * shards);
  return buckets;
}

std::vector<ShardPiece> pieces_of(const BucketLayout& bucket, int shards, int shard) {
  const int64_t length = bucket.elements / shards, first = length * shard;
  std::vector<ShardPiece> pieces;
  for (const BucketPlace& place : bucket.places) {
    const int64_t begin = std::max(place.offset, first), end = std::min(place.offset + place.elements, first + length);
    if (begin >= end) continue;
    pieces.push_back(
        {.item = place.item, .begin = begin - place.offset, .end = end - place.offset, .offset = begin - first});
  }
  return pieces;
}

}  // namespace ranklab
