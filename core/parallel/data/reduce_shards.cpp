#include "core/parallel/data/reduce_shards.h"

#include <utility>

#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "core/sim/op_observer.h"

namespace ranklab {

void ReduceShards::start(FlatBucket& bucket) {
  const MemoryScope memory(zero_.gradients ? MemoryCategory::kGradients : MemoryCategory::kBuffers);
  work_ = group_.reduce_scatter_async(bucket.flat);
}

// On a GPU the shard of a bucket that stays is reduced in its place.
bool ReduceShards::collect(FlatBucket& bucket) {
  at::Tensor shard = std::exchange(work_, nullptr)->wait();
  {
    const NoCostScope no_cost;
    if (zero_.gradients) {
      bucket.release();
    } else {
      shard = bucket.flat.narrow(0, group_.rank() * shard.numel(), shard.numel()).copy_(shard);
    }
    shard_.set_grads(shard);
  }
  return summed(shard);
}

// Sharded parameters are gathered by whoever uses them.
void ReduceShards::updated() {
  if (zero_.parameters) {
    shard_.updated_shard();
  } else {
    shard_.gather();
  }
}

std::unique_ptr<Reduction> make_reduce_shards(const ReductionSpec& spec) {
  return std::make_unique<ReduceShards>(spec);
}

}  // namespace ranklab
