// Partitions of a world's ranks into classes, identified by small numbers: the groups of a mesh axis, the ranks at the
// same position in their groups, and the joins and intersections of such partitions. A tensor's type (tensor_type.h) is
// made of them, so that dense and expert axes, which divide the same ranks in different ways, can be compared.
// Torch-free. Cost: a pass over the ranks for each pair that was not asked for before. Thread rule: one thread; copies
// are independent.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "core/comm/device_mesh.h"

namespace ranklab {

using PartitionId = uint16_t;

class RankPartitions {
 public:
  static constexpr PartitionId kApart = 0;     // each rank is a class of its own
  static constexpr PartitionId kTogether = 1;  // all ranks are one class

  explicit RankPartitions(const DeviceMesh& mesh);

  size_t ranks() const { return pipelines_.size(); }
  // The groups of an axis, and the classes of ranks at the same position in their groups.
  PartitionId groups(Axis axis) const { return groups_[static_cast<size_t>(axis)]; }
  PartitionId places(Axis axis) const { return places_[static_cast<size_t>(axis)]; }
  // In each pipeline the pipeline ranks `holders`, which hold copies of a parameter, are one class; each other rank is
  // a class of its own.
  PartitionId copies(const std::vector<int>& holders);

  // The finest partition that is coarser than both, and the coarsest that is finer than both.
  PartitionId join(PartitionId a, PartitionId b);
  PartitionId meet(PartitionId a, PartitionId b);
  // Whether each class of `a` lies in a class of `b`.
  bool within(PartitionId a, PartitionId b) { return meet(a, b) == a; }

 private:
  using Labels = std::vector<int32_t>;  // for each rank, the first rank of its class
  PartitionId add(Labels labels);
  Labels joined(const Labels& a, const Labels& b) const;
  Labels met(const Labels& a, const Labels& b) const;

  std::vector<Labels> partitions_;
  std::map<Labels, PartitionId> known_;
  std::unordered_map<uint32_t, PartitionId> joins_, meets_;
  std::array<PartitionId, static_cast<size_t>(Axis::kCount)> groups_{}, places_{};
  std::vector<std::vector<int>> pipelines_;  // the pp group of each rank
};

}  // namespace ranklab
