// A reduction within a group whose result is then all-reduced among the ranks that have the same shard in other groups
// (HSDP, PyTorch FSDP's hybrid sharding: Zhao et al. 2023, arXiv 2304.11277). Cost: an additional all_reduce of the
// result; the all_reduces of all buckets may be in flight at once.
#include <utility>

#include "core/parallel/data/reduction.h"

namespace ranklab {
namespace {

class ReduceHybrid : public Reduction {
 public:
  ReduceHybrid(std::unique_ptr<Reduction> inner, Communicator& replicas)
      : inner_(std::move(inner)), replicas_(replicas) {}
  void start(FlatBucket& bucket) override { inner_->start(bucket); }
  at::Tensor collect(FlatBucket& bucket) override {
    const at::Tensor sum = inner_->collect(bucket);
    if (!bucket.last_reduction) return sum;  // shards are all-reduced once they contain all microbatches
    work_ = replicas_.all_reduce_async(sum);
    return {};
  }
  bool finish() override {
    if (!work_) return false;
    std::exchange(work_, nullptr)->wait();
    return true;
  }
  BucketShard* shard() override { return inner_->shard(); }
  void updated() override { inner_->updated(); }

 private:
  std::unique_ptr<Reduction> inner_;
  Communicator& replicas_;
  WorkPtr work_;
};

}  // namespace

std::unique_ptr<Reduction> make_reduce_hybrid(std::unique_ptr<Reduction> inner, Communicator& replicas) {
  return std::make_unique<ReduceHybrid>(std::move(inner), replicas);
}

}  // namespace ranklab
