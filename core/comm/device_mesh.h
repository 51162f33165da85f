// Coordinates and groups of every rank, for the dense and the expert factorization (ParallelDims). Pure arithmetic and
// torch-free, until a rank binds its groups to communicators (RankContext). Cost: making a mesh, a group or all groups
// of an axis visits each rank; copies of a mesh share their table, since a world may have tens of thousands of ranks.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/comm/group.h"
#include "core/comm/parallel_dims.h"

namespace ranklab {

class DeviceMesh {
 public:
  explicit DeviceMesh(const ParallelDims& dims);  // resolves and checks

  const ParallelDims& dims() const { return dims_; }
  int world_size() const { return dims_.world; }
  int size(Axis axis) const;
  int coordinate(Axis axis, int global_rank) const;  // position of the rank in its group of that axis
  Group group(Axis axis, int global_rank) const;
  std::vector<Group> groups(Axis axis) const;  // each group once (with group_rank 0), ordered by first member
  // The axis over which ranks hold the same dense parameters: dp, or dp-cp if sequences are split.
  Axis replica_axis() const { return dims_.cp > 1 ? Axis::kDpCp : Axis::kDp; }
  // "dp0 tp1", the axes larger than one; "rank0" in a world of one
  std::string label(int global_rank) const;

 private:
  struct Coordinates {
    int tp, cp, dp, pp, ep, etp, edp;
    int replica = 0;  // index among the ranks of its replica_axis()
  };
  // Which group of an axis a rank is in, and its place there.
  struct Place {
    int64_t group;
    int member;
  };
  const Coordinates& at(int global_rank) const;
  Place place(Axis axis, const Coordinates& c, int global_rank) const;
  ParallelDims dims_;
  std::shared_ptr<const std::vector<Coordinates>> coordinates_;
};

}  // namespace ranklab
