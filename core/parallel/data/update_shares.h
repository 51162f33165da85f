// How much each member of the groups that share updates has to update: shards have equal sizes up to padding, but
// different numbers of parameter pieces and of whole matrices. Cost: one visit per piece. Thread rule: pure.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "core/comm/device_mesh.h"
#include "core/parallel/data/grad_bucket.h"

namespace ranklab {

struct UpdateShare {
  MatrixWork work = {};
  int64_t pieces = 0, matrix_pieces = 0;  // pieces of parameters, and those among them that are of matrices
  int64_t elements = 0;

  UpdateShare& operator+=(const UpdateShare& more);
};
using UpdateShares = std::map<Axis, std::vector<UpdateShare>>;  // by the group's axis, indexed by group rank

UpdateShares update_shares(const std::vector<GradBucket>& buckets);
// Of a rank that has these shares, over all axes.
UpdateShare share_of(int global_rank, const DeviceMesh& mesh, const UpdateShares& shares);

}  // namespace ranklab
