// How data-parallel ranks bring a bucket's gradients together, and what of it each of them updates: reduce_all.cpp
// (DDP), reduce_shards.cpp (ZeRO), reduce_hybrid.cpp (HSDP). One object a bucket. Another way is a file like these and
// a line of make_reduction(). Cost and memory: each says its own. Thread rule: its rank's thread; every member of the
// groups makes the same calls.
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
  // Posts what sums the bucket; all ranks start their buckets in one order.
  virtual void start(FlatBucket& bucket) = 0;
  // Waits for it: the sum of what this rank updates. Undefined: more is under way, which finish() awaits, after every
  // bucket's collect().
  virtual at::Tensor collect(FlatBucket& bucket) = 0;
  virtual bool finish() { return false; }  // true: something was awaited
  // What this rank updates of the bucket, with its gradients; null: all of it.
  virtual BucketShard* shard() { return nullptr; }
  virtual void updated() {}  // by the optimizer. Collective
};

// What outlives the reduction, but for the layout.
struct ReductionSpec {
  const ZeroStage& zero;
  const BucketLayout& layout;
  const std::vector<Parameter*>& parameters;  // the layout's items
  Communicator& group;
  Communicator* replicas;  // the ranks with the same shard in other groups; null: there is one group
};
std::unique_ptr<Reduction> make_reduce_all(const ReductionSpec& spec);
std::unique_ptr<Reduction> make_reduce_shards(const ReductionSpec& spec);
std::unique_ptr<Reduction> make_reduce_hybrid(std::unique_ptr<Reduction> inner, Communicator& replicas);

inline std::unique_ptr<Reduction> make_reduction(const ReductionSpec& spec) {
  const auto make = spec.zero.reduction == GradReduction::kAll ? make_reduce_all : make_reduce_shards;
  return spec.replicas != nullptr ? make_reduce_hybrid(make(spec), *spec.replicas) : make(spec);
}

}  // namespace ranklab
