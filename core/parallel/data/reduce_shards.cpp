// Every rank gets only the sum of its shard and updates that; an all_gather brings the others' updates (ZeRO:
// Rajbhandari et al. 2020, arXiv 1910.02054). Bitwise equal to the all_reduce. Cost: a reduce_scatter and an
// all_gather, each (n-1)/n of the bytes. Memory: if the stage shards gradients, the bucket is freed once it is reduced;
// if it is reduced several times in a step, the shards are summed.
#include <utility>

#include "core/parallel/data/reduction.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

class ReduceShards : public Reduction {
 public:
  explicit ReduceShards(const ReductionSpec& spec)
      : zero_(spec.zero), group_(spec.group), shard_(spec.layout, spec.parameters, spec.group) {}
  void start(FlatBucket& bucket) override {
    const MemoryScope memory(zero_.gradients ? MemoryCategory::kGradients : MemoryCategory::kBuffers);
    work_ = group_.reduce_scatter_async(bucket.flat);
  }
  // The copy is not charged: on a GPU the shard of a bucket that stays allocated is reduced in place.
  at::Tensor collect(FlatBucket& bucket) override {
    at::Tensor sum = std::exchange(work_, nullptr)->wait();
    if (bucket.reductions > 1) sum = sum_.add_(sum);
    sum_ = bucket.last_reduction ? at::Tensor() : sum;
    const NoCostScope no_cost;
    if (zero_.gradients) {
      bucket.release();
    } else {
      sum = bucket.flat.narrow(0, group_.rank() * sum.numel(), sum.numel()).copy_(sum);
    }
    shard_.set_grads(sum);
    return sum;
  }
  BucketShard* shard() override { return &shard_; }
  void updated() override {  // sharded parameters are gathered when they are used
    if (zero_.parameters) return shard_.updated_shard();
    shard_.gather();
  }

 private:
  ZeroStage zero_;
  Communicator& group_;
  BucketShard shard_;
  WorkPtr work_;
  at::Tensor sum_;  // the sum of this step's reductions so far, while more are to come
};

}  // namespace

std::unique_ptr<Reduction> make_reduce_shards(const ReductionSpec& spec) {
  return std::make_unique<ReduceShards>(spec);
}

}  // namespace ranklab
