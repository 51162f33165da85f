#include "core/parallel/data/update_shares.h"

#include <algorithm>

namespace ranklab {

UpdateShare& UpdateShare::operator+=(const UpdateShare& more) {
  work += more.work;
  pieces += more.pieces;
  matrix_pieces += more.matrix_pieces;
  elements += more.elements;
  return *this;
}

UpdateShares update_shares(const std::vector<GradBucket>& buckets) {
  UpdateShares shares;
  for (const GradBucket& bucket : buckets) {
    if (bucket.shards == 1 && bucket.work.empty()) continue;
    std::vector<UpdateShare>& members = shares[bucket.axis];
    members.resize(std::max(static_cast<size_t>(bucket.shards), bucket.work.size()));
    for (size_t member = 0; member < bucket.work.size(); ++member) members[member].work += bucket.work[member];
    for (int member = 0; member < bucket.shards && bucket.shards > 1; ++member) {
      for (const ShardPiece& piece : pieces_of(bucket.layout, bucket.shards, member)) {
        UpdateShare& own = members[static_cast<size_t>(member)];
        ++own.pieces;
        if (!bucket.work.empty()) ++own.matrix_pieces;
        own.elements += piece.elements();
      }
    }
  }
  return shares;
}

UpdateShare share_of(int global_rank, const DeviceMesh& mesh, const UpdateShares& shares) {
  UpdateShare own;
  for (const auto& [axis, members] : shares) own += members[static_cast<size_t>(mesh.coordinate(axis, global_rank))];
  return own;
}

}  // namespace ranklab
