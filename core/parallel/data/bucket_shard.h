// One rank's shard of a gradient bucket: the pieces of parameters that only this rank updates, and the all_gather of
// the result (ZeRO: Rajbhandari et al. 2020, arXiv 1910.02054). A piece is a Parameter whose data is a flat view of the
// whole parameter (stages 1 and 2) or of this rank's shard (stage 3), so that any elementwise optimizer updates it in
// place and keeps states for the piece only; its partition is the whole parameter's. Cost of a gather: one all_gather
// of the bucket. Memory: the gathered bucket from start_gather() to finish_gather(); in stage 3 the shard, and the
// whole bucket from finish_gather() to free_whole(). The whole bucket never exists before that, because shards of new
// parameters are initialized directly. Thread rule: its rank's thread; every member of the group gathers.
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

// Whether free_whole() has freed a tensor's memory: reading it would crash.
inline bool is_freed(const at::Tensor& tensor) { return tensor.numel() > 0 && tensor.storage().nbytes() == 0; }

class BucketShard {
 public:
  // `parameters` are the items of the layout; they and the group must outlive this.
  BucketShard(BucketLayout layout, const std::vector<Parameter*>& parameters, Communicator& group);

  int64_t elements() const { return layout_.elements / group_.size(); }
  std::vector<Parameter*> pieces() const;
  // The whole parameter and the index of the piece's first element in it; null if the piece is not in this shard.
  std::pair<const Parameter*, int64_t> origin_of(const Parameter* piece) const;
  // Sets the pieces' gradients to views of the reduced gradients `shard` [elements()].
  void set_grads(const at::Tensor& shard);
  // Gathers every rank's updated pieces into the whole parameters. Pieces must not change between the two calls.
  void start_gather();
  void finish_gather();  // waits; afterwards the parameters have their new values (and memory, in stage 3)
  void gather() {
    start_gather();
    finish_gather();
  }

  // Stage 3. From keep_shard() on the parameters are released: a tensor keeps its sizes but has no memory (is_freed()).
  // Values that have not been made yet (Parameter::unmade) are made here, only for the shard. REQUIRES: a parameter's
  // data occupies its whole storage; unmade parameters are sharded before any other use.
  void keep_shard();
  // From now on gathers send quantized weights in low precision; `precision` gives the precision of each weight.
  // REQUIRES: keep_shard().
  using GatherPrecision = std::function<TensorPrecision(const Parameter&)>;
  void gather_in(const GatherPrecision& precision);
  void updated_shard();  // call when elements of the shard have changed; collective if gathers are quantized
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
  void copy_to_parameters(at::Tensor whole);
  void hand_to_parameters(const at::Tensor& whole);
  at::Tensor of_last_step(const at::Tensor& whole);

  BucketLayout layout_;
  std::vector<Parameter*> parameters_;
  Communicator& group_;
  std::vector<std::unique_ptr<Piece>> pieces_;
  at::Tensor shard_;                   // set by keep_shard()
  std::unique_ptr<ShardCodec> codec_;  // null: gathers send elements unquantized
  WorkPtr gathering_;
  at::Tensor late_;  // the values that the previous call of of_last_step() was given
};

}  // namespace ranklab
