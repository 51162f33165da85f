// Shards within a group, whose sums are summed over the groups, too: among the ranks that have the same shard (HSDP,
// PyTorch FSDP's hybrid sharding: Zhao et al. 2023, arXiv 2304.11277). Cost: that of the shards in a group, and an
// all_reduce of a shard over the replicas, which all buckets have under way at once.
#include <utility>

#include "core/parallel/data/reduce_shards.h"

namespace ranklab {
namespace {

class ReduceHybrid : public ReduceShards {
 public:
  explicit ReduceHybrid(const ReductionSpec& spec) : ReduceShards(spec), replicas_(*spec.replicas) {}
  bool finish() override {
    if (!work_) return false;
    std::exchange(work_, nullptr)->wait();
    return true;
  }

 protected:
  bool summed(const at::Tensor& shard) override {
    work_ = replicas_.all_reduce_async(shard);
    return false;
  }

 private:
  Communicator& replicas_;
  WorkPtr work_;
};

}  // namespace

std::unique_ptr<Reduction> make_reduce_hybrid(const ReductionSpec& spec) {
  return std::make_unique<ReduceHybrid>(spec);
}

}  // namespace ranklab
