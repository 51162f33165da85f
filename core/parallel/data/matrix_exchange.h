// Assembles whole matrices from the pieces that ranks own, maps them, and gives each rank its pieces of the result,
// bucket by bucket (MatrixBuckets::kApart or kWhole). In the group that shares the buckets:
//   - owners: a matrix is sent to one member, which maps it, and back (distributed Muon, Liu et al. 2025, arXiv
//     2502.16982, algorithm 1, here with one owner per matrix): an all_to_all there and one back for a bucket that has
//     cut matrices. Owners are chosen among the members that hold much of a matrix, so that all have about equal work.
//     Where every member has whole matrices (no sharding) nothing is sent there, and an all_gather brings the results.
//   - otherwise every member maps every matrix: one all_gather for a bucket whose matrices are cut, nothing else.
// Where no shard ends within a matrix (kWhole) nothing is exchanged. A matrix that is sharded over tensor-parallel
// ranks (`tp`) is first gathered by them and mapped by each: one all_gather for a bucket in which a member has such
// matrices. Memory: a bucket's matrices; with owners, all matrices that a member owns. Thread rule: its rank's thread;
// every member of the groups calls.
#pragma once
#include <ATen/core/Tensor.h>

#include <unordered_map>
#include <vector>

#include "core/comm/communicator.h"
#include "core/nn/matrix_parts.h"
#include "core/parallel/data/grad_bucket.h"

namespace ranklab {

class MatrixExchange {
 public:
  // This rank's piece of each whole parameter, or all of the parameter; flat.
  using Pieces = std::unordered_map<const Parameter*, at::Tensor>;

  // `buckets` belong to a reducer, which must outlive this; those without hidden matrices are ignored. `tp`: the group
  // over which parameters are partitioned.
  MatrixExchange(const std::vector<GradBucket>& buckets, Communicator& group, Communicator& tp, bool owners);

  // These three together replace the pieces by those of the mapped matrices. All matrices are first sent to their
  // owners and results come back last, so that owners of different buckets, also in other exchanges, work at the same
  // time. REQUIRES: all pieces of the buckets are present; gradients are not recorded.
  using UnderWay = std::vector<WorkPtr>;  // transfers in flight, by bucket
  UnderWay send(const Pieces& pieces) const;
  UnderWay map(UnderWay going, Pieces& pieces, const MatrixMap& map) const;
  void take(UnderWay coming, Pieces& pieces) const;
  // For each bucket that is not ignored, the work that each member does.
  std::vector<std::vector<MatrixWork>> work() const;

 private:
  struct Part {  // the piece of one member
    size_t place = 0;
    int64_t begin = 0, end = 0;
    int64_t elements() const { return end - begin; }
  };
  struct Bucket {
    std::vector<const Parameter*> matrices;  // by place
    std::vector<std::vector<Part>> parts;    // by member
    std::vector<int> owners;                 // by place; empty: each member maps what it has
    bool cut = false;                        // some matrix has pieces on several members
    bool shared = true;                      // each member has the whole of every matrix
    // With owners and cut matrices: this member's parts ordered by owner, the parts of its own matrices ordered by
    // member, and the number of elements that go to and come from each member.
    std::vector<Part> sent = {}, received = {};
    std::vector<int64_t> send_rows = {}, recv_rows = {};

    bool routed() const { return !owners.empty() && !shared; }
  };

  Bucket plan(const GradBucket& bucket, bool owners, std::vector<double>& load) const;
  static at::Tensor joined(const std::vector<at::Tensor>& flat, const Bucket& bucket);
  void choose_owners(Bucket& bucket, std::vector<double>& load) const;
  void route(Bucket& bucket) const;
  void map_held(const Bucket& bucket, Pieces& pieces, const MatrixMap& map) const;
  void map_gathered(const Bucket& bucket, Pieces& pieces, const MatrixMap& map) const;
  WorkPtr send_to_owners(const Bucket& bucket, const Pieces& pieces) const;
  // Both start sending the results.
  WorkPtr map_owned(const Bucket& bucket, const at::Tensor& received, const MatrixMap& map) const;
  WorkPtr map_shared(const Bucket& bucket, const Pieces& pieces, const MatrixMap& map) const;
  void take_results(const Bucket& bucket, const at::Tensor& results, Pieces& pieces) const;
  // `locals`: the complete parameters of this rank, flat.
  std::vector<at::Tensor> mapped(const std::vector<const Parameter*>& parameters, std::vector<at::Tensor> locals,
                                 const MatrixMap& map) const;

  Communicator& group_;
  Communicator& tp_;
  std::vector<Bucket> buckets_;
};

}  // namespace ranklab
