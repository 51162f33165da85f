#include "core/parallel/data/bucket_layout.h"

#include <algorithm>
#include <set>

namespace ranklab {
namespace {

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

using Holders = std::vector<int>;

// The items that may share buckets, in the order in which they fill them.
std::vector<size_t> family(const std::vector<BucketItem>& items, bool sum_over_tp, const Holders* holders) {
  std::vector<size_t> order;
  for (size_t i = items.size(); i-- > 0;) {
    const bool wanted =
        items[i].sum_over_tp == sum_over_tp && (holders == nullptr || items[i].pipeline_ranks == *holders);
    if (wanted) order.push_back(i);
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
      buckets.push_back({.places = {}, .element_bytes = element, .sum_over_tp = item.sum_over_tp, .unit = item.unit});
    }
    BucketLayout& bucket = buckets.back();
    bucket.places.push_back({.item = i, .offset = bucket.elements, .elements = item.elements});
    bucket.elements += round_up(item.elements, kBucketLineElements);
    previous = &item;
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
  for (const bool sum_over_tp : {false, true}) {
    if (shards == 1) {
      fill(items, family(items, sum_over_tp, nullptr), bucket_bytes, buckets);
      continue;
    }
    for (const Holders& holders : all_holders) fill(items, family(items, sum_over_tp, &holders), bucket_bytes, buckets);
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
