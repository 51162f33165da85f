// Coordinates and groups of every rank, for the dense and the expert factorization (ParallelDims). Pure arithmetic,
// torch-free, until a rank binds its groups to communicators (RankContext).
#pragma once
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
  std::vector<Group> groups(Axis axis) const;  // each group once (group_rank 0), ordered by first member
  // The axis over which ranks hold the same dense parameters: dp, or dp-cp where sequences are split.
  Axis replica_axis() const { return dims_.cp > 1 ? Axis::kDpCp : Axis::kDp; }
  // "dp0 tp1", the axes larger than one; "rank0" in a world of one
  std::string label(int global_rank) const;

 private:
  struct Coordinates {
    int tp, cp, dp, pp, ep, etp, edp;
    int replica = 0;  // among the ranks of its replica_axis()
  };
  const Coordinates& at(int global_rank) const;
  ParallelDims dims_;
  std::vector<Coordinates> coordinates_;
};

}  // namespace ranklab
