// One rank's part of a shared-out gradient bucket: the pieces of parameters that this rank alone updates, and the way
// back (ZeRO stages 1 and 2: Rajbhandari et al. 2020, arXiv 1910.02054). A piece is a Parameter whose data is a flat
// view of the whole one's, so that any optimizer that works element by element updates it in place and keeps states for
// it alone; its partition is the whole parameter's. Cost of gather(): one all_gather of the bucket. Memory: nothing of
// its own; the gathered bucket while gather() runs. Thread rule: its rank's thread; every member of the group gathers.
#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <utility>
#include <vector>

#include "core/comm/communicator.h"
#include "core/nn/parameter.h"
#include "core/parallel/bucket_layout.h"

namespace ranklab {

class BucketShard {
 public:
  // `parameters` are the items of the layout; they and the group outlive this.
  BucketShard(BucketLayout layout, const std::vector<Parameter*>& parameters, Communicator& group);

  int64_t elements() const { return layout_.elements / group_.size(); }
  std::vector<Parameter*> pieces() const;
  // The whole parameter and the piece's first element in it; null when it is none of these.
  std::pair<const Parameter*, int64_t> origin_of(const Parameter* piece) const;
  // The reduced gradients of the shard [elements()], which the pieces then share.
  void set_grads(const at::Tensor& shard);
  // Every rank's updated pieces, into the whole parameters.
  void gather();

 private:
  struct Piece {
    Parameter parameter;
    int64_t offset = 0;  // in the shard
    const Parameter* whole = nullptr;
    int64_t begin = 0;  // in the whole
  };

  at::Tensor updated() const;

  BucketLayout layout_;
  std::vector<Parameter*> parameters_;
  Communicator& group_;
  std::vector<std::unique_ptr<Piece>> pieces_;
};

}  // namespace ranklab
