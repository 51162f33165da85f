// Gathers updated parameters while the next forward runs (ZeRO stages 1 and 2; Megatron-LM's --overlap-param-gather,
// PyTorch FSDP2 without resharding after forward). After an update a bucket is stale: its parameters have only this
// rank's new elements. A unit's buckets are gathered before the unit's next use (ParameterGate), and those of the unit
// after it are gathered while it computes. Cost: the all_gathers that BucketShard::gather() makes, in the order of use.
// Memory: the gathered buckets of at most two units. Thread rule: its rank's thread; every member of the groups makes
// the same calls.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/parallel/data/bucket_shard.h"
#include "core/parallel/parameter_gate.h"

namespace ranklab {

class OverlappedGathers : public ParameterGate {
 public:
  // `units`: those that have parameters in the shard's bucket. `shard` must outlive this.
  void add(BucketShard& shard, const std::vector<std::string>& units);

  // Call after an update: all buckets are stale, and the gathers of those that are used first start. REQUIRES: since
  // the previous call settle() was called, or all units were used.
  void begin();
  // Completes all gathers. Call before parameters are read outside of a unit's use, and before owned pieces change.
  void settle();

  void enter(const std::string& unit, const std::string& next) override;
  void leave(const std::string& /*unit*/) override {}

 private:
  enum class State { kCurrent, kStale, kGathering };
  struct Bucket {
    BucketShard* shard = nullptr;
    State state = State::kCurrent;
  };
  void start(const std::string& unit);
  void start(Bucket& bucket);
  void finish(Bucket& bucket);

  std::vector<Bucket> buckets_;
  std::map<std::string, std::vector<size_t>> buckets_of_;  // by unit: indices
  std::vector<std::string> first_uses_;                    // the units that a forward uses first
  size_t not_current_ = 0;                                 // number of buckets
};

}  // namespace ranklab
