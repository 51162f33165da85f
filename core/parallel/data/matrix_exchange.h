// Brings whole matrices together from the pieces that ranks own of them, maps them, and gives each rank its pieces of
// the result, bucket by bucket (MatrixBuckets::kApart or kWhole). In the group that shares the buckets:
//   - owners: a matrix goes to one member, which maps it, and back (distributed Muon, Liu et al. 2025, arXiv
//     2502.16982, algorithm 1, here with one owner a matrix): an all_to_all there and one back for a bucket that has
//     cut matrices. Owners are chosen among the members with much of a matrix, so that all have about equal work. Where
//     every member has whole matrices (no sharding) there is nothing to send, and an all_gather brings the results.
//   - otherwise every member maps every matrix: one all_gather for a bucket whose matrices are cut, nothing else.
// Where no shard ends within a matrix (kWhole) nothing is exchanged. A matrix that tensor-parallel ranks share (`tp`)
// is gathered by them first and mapped by each: one all_gather for a bucket in which a member has such matrices.
// Memory: a bucket's matrices; with owners all that a member owns. Thread rule: its rank's thread; every member of the
// groups calls.
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
  // This rank's piece of each whole parameter, or all of it; flat.
  using Pieces = std::unordered_map<const Parameter*, at::Tensor>;

  // `buckets` are a reducer's, which outlives this; those without hidden matrices are left out. `tp`: over which
  // parameters are partitioned.
  MatrixExchange(const std::vector<GradBucket>& buckets, Communicator& group, Communicator& tp, bool owners);

  // Together they replace the pieces by those of the mapped matrices: all go to their owners first, and results come
  // back last, so that owners of different buckets, also of other exchanges, work at once. REQUIRES: all pieces of the
  // buckets are there, gradients are not recorded.
  using UnderWay = std::vector<WorkPtr>;  // by bucket
  UnderWay send(const Pieces& pieces) const;
  UnderWay map(UnderWay going, Pieces& pieces, const MatrixMap& map) const;
  void take(UnderWay coming, Pieces& pieces) const;
  // For each bucket of the constructor's that is not left out: what each member maps.
  std::vector<std::vector<MatrixWork>> work() const;

 private:
  struct Part {  // a member's piece
    size_t place = 0;
    int64_t begin = 0, end = 0;
    int64_t elements() const { return end - begin; }
  };
  struct Bucket {
    std::vector<const Parameter*> matrices;  // by place
    std::vector<std::vector<Part>> parts;    // by member
    std::vector<int> owners;                 // by place; empty: each member maps what it has
    bool cut = false;                        // a matrix has pieces on several members
    bool shared = true;                      // each member has all of every matrix
    // With owners, where matrices are cut: this member's parts by owner, those of its matrices by member, and how many
    // elements go to and come from each.
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
  // Start to send the results.
  WorkPtr map_owned(const Bucket& bucket, const at::Tensor& received, const MatrixMap& map) const;
  WorkPtr map_shared(const Bucket& bucket, const Pieces& pieces, const MatrixMap& map) const;
  void take_results(const Bucket& bucket, const at::Tensor& results, Pieces& pieces) const;
  // `locals`: whole parameters of this rank, flat.
  std::vector<at::Tensor> mapped(const std::vector<const Parameter*>& parameters, std::vector<at::Tensor> locals,
                                 const MatrixMap& map) const;

  Communicator& group_;
  Communicator& tp_;
  std::vector<Bucket> buckets_;
};

}  // namespace ranklab
