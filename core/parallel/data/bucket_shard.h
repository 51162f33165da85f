// One rank's part of a shared-out gradient bucket: the pieces of parameters that this rank alone updates, and the way
// back (ZeRO: Rajbhandari et al. 2020, arXiv 1910.02054). A piece is a Parameter whose data is a flat view of the whole
// one's (stages 1 and 2) or of this rank's shard (stage 3), so that any optimizer that works element by element updates
// it in place and keeps states for it alone; its partition is the whole parameter's. Cost of a gather: one all_gather
// of the bucket. Memory: nothing of its own and the gathered bucket while gather() runs; in stage 3 the shard, and the
// whole from finish_gather() to free_whole(), never before: shards of new parameters are made by themselves. Thread
// rule: its rank's thread; every member of the group gathers.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "core/comm/communicator.h"
#include "core/nn/parameter.h"
#include "core/parallel/data/bucket_layout.h"
#include "core/parallel/data/shard_codec.h"

namespace ranklab {

// Whether a tensor's memory is with free_whole(): to read it ends the program.
inline bool is_away(const at::Tensor& tensor) { return tensor.numel() > 0 && tensor.storage().nbytes() == 0; }

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

  // Stage 3. From keep_shard() on the parameters' elements are away: a tensor keeps its sizes and has no memory
  // (is_away()). Values that are not made yet (Parameter::unmade) are made here, those of the shard alone. REQUIRES: a
  // parameter's data is all of its storage; unmade parameters are shared out before anything else is done with them.
  void keep_shard();
  // Gathers from now on carry quantized weights in few bits: `precision` of each of them. REQUIRES: keep_shard().
  using GatherPrecision = std::function<TensorPrecision(const Parameter&)>;
  void gather_in(const GatherPrecision& precision);
  void updated_shard();  // its elements have changed. Collective where weights travel in few bits
  void start_gather();
  void finish_gather();  // waits; the parameters are there
  void free_whole();

 private:
  struct Piece {
    Parameter parameter;
    int64_t offset = 0;  // in the shard
    int64_t elements = 0;
    const Parameter* whole = nullptr;
    int64_t begin = 0;  // in the whole

    at::Tensor in(const at::Tensor& shard) const { return shard.narrow(0, offset, elements); }
  };

  at::Tensor updated() const;

  BucketLayout layout_;
  std::vector<Parameter*> parameters_;
  Communicator& group_;
  std::vector<std::unique_ptr<Piece>> pieces_;
  at::Tensor shard_;                   // of keep_shard()
  std::unique_ptr<ShardCodec> codec_;  // null: gathers carry elements as they are
  WorkPtr gathering_;
};

}  // namespace ranklab
