// How data-parallel ranks reduce a bucket's gradients, and which part of it each of them updates: reduce_all.cpp (DDP),
// reduce_shards.cpp (ZeRO), reduce_hybrid.cpp (HSDP). One object per bucket. Adding another way needs a file like these
// and a line in make_reduction(). Cost and memory: documented in each file. Thread rule: its rank's thread; every
// member of the groups makes the same calls.
#pragma once
#include <memory>
#include <vector>

#include "core/base/zero_stage.h"
#include "core/parallel/data/bucket_shard.h"
#include "core/parallel/data/flat_bucket.h"

namespace ranklab {

class Reduction {
 public:
  virtual ~Reduction() = default;
  // Starts the collective that sums the bucket; all ranks start their buckets in the same order.
  virtual void start(FlatBucket& bucket) = 0;
  // Waits for the collective. RETURNS: the sum of what this rank updates; undefined if a further collective is in
  // flight, for which finish() waits. Call finish() after collect() of every bucket.
  virtual at::Tensor collect(FlatBucket& bucket) = 0;
  virtual bool finish() { return false; }  // true: it has waited for a collective
  // The part of the bucket that this rank updates, with its gradients; null: the whole bucket.
  virtual BucketShard* shard() { return nullptr; }
  virtual void updated() {}  // call after the optimizer's update. Collective
};

// All members except the layout must outlive the reduction.
struct ReductionSpec {
  const ZeroStage& zero;
  const BucketLayout& layout;
  const std::vector<Parameter*>& parameters;  // the layout's items
  Communicator& group;
  Communicator* replicas;  // the ranks with the same shard in other groups; null: there is only one group
};
std::unique_ptr<Reduction> make_reduce_all(const ReductionSpec& spec);
std::unique_ptr<Reduction> make_reduce_shards(const ReductionSpec& spec);
std::unique_ptr<Reduction> make_reduce_hybrid(std::unique_ptr<Reduction> inner, Communicator& replicas);

inline std::unique_ptr<Reduction> make_reduction(const ReductionSpec& spec) {
  const auto make = spec.zero.reduction == GradReduction::kAll ? make_reduce_all : make_reduce_shards;
  return spec.replicas != nullptr ? make_reduce_hybrid(make(spec), *spec.replicas) : make(spec);
}

}  // namespace ranklab
