#include "core/spmd/rank_partitions.h"

#include <algorithm>
#include <numeric>

namespace ranklab {
namespace {

uint32_t pair_of(PartitionId a, PartitionId b) {
  return (static_cast<uint32_t>(std::min(a, b)) << 16) | static_cast<uint32_t>(std::max(a, b));
}

int32_t root_of(std::vector<int32_t>& parent, int32_t rank) {
  int32_t root = rank;
  while (parent[static_cast<size_t>(root)] != root) root = parent[static_cast<size_t>(root)];
  while (parent[static_cast<size_t>(rank)] != root) rank = std::exchange(parent[static_cast<size_t>(rank)], root);
  return root;
}

}  // namespace

RankPartitions::RankPartitions(const DeviceMesh& mesh) {
  const auto world = static_cast<size_t>(mesh.world_size());
  Labels apart(world);
  std::iota(apart.begin(), apart.end(), 0);
  add(apart);
  // in a world of one rank both are the same
  if (add(Labels(world, 0)) == kApart) partitions_.push_back(partitions_[0]);
  groups_.fill(kApart);
  places_.fill(kTogether);
  pipelines_.assign(world, {});
  for (size_t axis = 0; axis < groups_.size(); ++axis) {
    if (mesh.size(static_cast<Axis>(axis)) == 1) continue;
    Labels groups(world), places(world);
    Labels first_at(world, -1);  // the first rank at each position
    for (const Group& group : mesh.groups(static_cast<Axis>(axis))) {
      for (size_t place = 0; place < group.global_ranks.size(); ++place) {
        const int rank = group.global_ranks[place];
        groups[static_cast<size_t>(rank)] = group.global_ranks.front();
        if (first_at[place] < 0) first_at[place] = rank;
        places[static_cast<size_t>(rank)] = first_at[place];
        if (static_cast<Axis>(axis) == Axis::kPp) pipelines_[static_cast<size_t>(rank)] = group.global_ranks;
      }
    }
    groups_[axis] = add(std::move(groups));
    places_[axis] = add(std::move(places));
  }
}

PartitionId RankPartitions::add(Labels labels) {
  // A class is identified by its first rank.
  std::unordered_map<int32_t, int32_t> first;
  for (size_t rank = 0; rank < labels.size(); ++rank)
    labels[rank] = first.try_emplace(labels[rank], static_cast<int32_t>(rank)).first->second;
  const auto [found, is_new] = known_.try_emplace(labels, static_cast<PartitionId>(partitions_.size()));
  if (is_new) partitions_.push_back(std::move(labels));
  return found->second;
}

PartitionId RankPartitions::copies(const std::vector<int>& holders) {
  Labels labels = partitions_[kApart];
  for (size_t rank = 0; rank < labels.size(); ++rank) {
    const std::vector<int>& pipeline = pipelines_[rank];
    for (const int holder : holders) {
      if (static_cast<size_t>(holder) < pipeline.size() && pipeline[static_cast<size_t>(holder)] == labels[rank])
        labels[rank] = pipeline[static_cast<size_t>(holders.front())];
    }
  }
  return add(std::move(labels));
}

PartitionId RankPartitions::join(PartitionId a, PartitionId b) {
  if (a == b || b == kApart) return a;
  if (a == kApart) return b;
  const auto found = joins_.find(pair_of(a, b));
  if (found != joins_.end()) return found->second;
  return joins_[pair_of(a, b)] = add(joined(partitions_[a], partitions_[b]));
}

PartitionId RankPartitions::meet(PartitionId a, PartitionId b) {
  if (a == b || b == kTogether) return a;
  if (a == kTogether) return b;
  const auto found = meets_.find(pair_of(a, b));
  if (found != meets_.end()) return found->second;
  return meets_[pair_of(a, b)] = add(met(partitions_[a], partitions_[b]));
}

RankPartitions::Labels RankPartitions::joined(const Labels& a, const Labels& b) const {
  Labels parent = a;
  for (size_t rank = 0; rank < b.size(); ++rank) {
    const int32_t one = root_of(parent, static_cast<int32_t>(rank)), other = root_of(parent, b[rank]);
    parent[static_cast<size_t>(std::max(one, other))] = std::min(one, other);
  }
  for (size_t rank = 0; rank < parent.size(); ++rank) parent[rank] = root_of(parent, static_cast<int32_t>(rank));
  return parent;
}

RankPartitions::Labels RankPartitions::met(const Labels& a, const Labels& b) const {
  std::unordered_map<int64_t, int32_t> first;
  Labels out(a.size());
  for (size_t rank = 0; rank < a.size(); ++rank) {
    const int64_t both = (static_cast<int64_t>(a[rank]) << 32) | b[rank];
    out[rank] = first.try_emplace(both, static_cast<int32_t>(rank)).first->second;
  }
  return out;
}

}  // namespace ranklab
