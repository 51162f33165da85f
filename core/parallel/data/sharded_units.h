// The whole parameters of a unit, brought for a use and freed after it (ZeRO stage 3; ParameterGate): an all_gather of
// the unit's buckets, started while the unit before it computes. Between uses only this rank's shards exist, and a
// parameter has no memory (is_away()). Cost of a use: one all_gather a bucket ((n-1)/n of its
// bytes in and out). Memory: at most two units at once, the one in use and the next. Thread rule: its rank's thread;
// every member of the groups makes the same calls.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/parallel/data/bucket_shard.h"
#include "core/parallel/parameter_gate.h"
#include "core/trace/zero_event.h"

namespace ranklab {

class ShardedUnits : public ParameterGate {
 public:
  // Told of every change: gathering, gathered, freed.
  using Watch = std::function<void(ZeroState state, const std::string& unit)>;
  explicit ShardedUnits(Watch watch = {}) : watch_(std::move(watch)) {}

  // `shard` keeps its parameters away from now on, and outlives this.
  void add(const std::string& unit, BucketShard& shard);

  void enter(const std::string& unit, const std::string& next) override;
  void leave(const std::string& unit) override;
  // Throws kInternal when a unit is there or on its way: after a step none is in use.
  void check_all_away() const;

 private:
  struct Unit {
    std::vector<BucketShard*> shards;
    int uses = 0;
    bool coming = false;  // gathering, or there
  };
  void start(const std::string& name, Unit& unit);
  void tell(ZeroState state, const std::string& name) const;

  Watch watch_;
  std::map<std::string, Unit> units_;
};

}  // namespace ranklab
