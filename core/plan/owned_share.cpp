#include "core/plan/owned_share.h"

#include <algorithm>

namespace ranklab {
namespace {

constexpr size_t kUnderWay = 2;  // GradReducer: reductions that are not awaited yet

// Of the buckets of one reducer; all of them have the same number of shards.
OwnedShare largest_share_of(const std::vector<const PlannedBucket*>& buckets) {
  if (buckets.empty()) return {};
  std::vector<OwnedShare> ranks(static_cast<size_t>(buckets[0]->shards));
  for (const PlannedBucket* bucket : buckets) {
    const int64_t length = bucket->elements() / bucket->shards;
    for (const BucketPlace& place : bucket->layout.places) {
      const int64_t end = place.offset + place.elements;
      for (int64_t shard = place.offset / length; shard * length < end; ++shard) {
        OwnedShare& rank = ranks[static_cast<size_t>(shard)];
        rank.elements += std::min(end, (shard + 1) * length) - std::max(place.offset, shard * length);
        ++rank.pieces;
      }
    }
  }
  OwnedShare largest;
  for (const OwnedShare& rank : ranks) {
    largest.elements = std::max(largest.elements, rank.elements);
    largest.pieces = std::max(largest.pieces, rank.pieces);
  }
  return largest;
}

int64_t peak_of(const StepShape& shape, const std::vector<const PlannedBucket*>& buckets) {
  // Until the first reduction starts, every bucket is filled: by earlier microbatches, or because all start at the end.
  const bool fills_first = shape.num_microbatches > 1 || !shape.overlap_grad_reduce;
  const auto early = [&](const PlannedBucket& bucket) {
    return fills_first || bucket.layout.sum_over_tp || bucket.shards == 1;
  };
  int64_t alive = 0;
  for (const PlannedBucket* bucket : buckets) alive += early(*bucket) ? bucket->bytes() : 0;
  int64_t peak = alive;
  for (size_t i = 0; i < buckets.size(); ++i) {
    if (!early(*buckets[i])) alive += buckets[i]->bytes();
    peak = std::max(peak, alive);
    if (buckets[i]->shards == 1) continue;
    if (i >= kUnderWay) alive -= buckets[i - kUnderWay]->bytes();
    alive += buckets[i]->shard_bytes();
    peak = std::max(peak, alive);
  }
  return peak;
}

std::vector<const PlannedBucket*> of_kind(const std::vector<PlannedBucket>& buckets, bool is_expert) {
  std::vector<const PlannedBucket*> result;
  for (const PlannedBucket& bucket : buckets) {
    if (bucket.is_expert == is_expert) result.push_back(&bucket);
  }
  return result;
}

}  // namespace

OwnedShare largest_share(const std::vector<PlannedBucket>& buckets) {
  const OwnedShare dense = largest_share_of(of_kind(buckets, false)),
                   experts = largest_share_of(of_kind(buckets, true));
  return {.elements = dense.elements + experts.elements, .pieces = dense.pieces + experts.pieces};
}

int64_t peak_gradient_bytes(const StepShape& shape, const std::vector<PlannedBucket>& buckets) {
  return peak_of(shape, of_kind(buckets, false)) + peak_of(shape, of_kind(buckets, true));
}

}  // namespace ranklab
