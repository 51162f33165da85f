// Gathers the whole parameters of a unit for a use and frees them after it (ZeRO stage 3; ParameterGate): an all_gather
// of the unit's buckets, prefetched while the previous unit computes. Between uses only this rank's shards exist, and a
// parameter has no memory (is_freed()). Cost of a use: one all_gather per bucket ((n-1)/n of its bytes in and out).
// Memory: at most two units at once, the one in use and the next. Thread rule: its rank's thread; every member of the
// groups makes the same calls.
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
  // Called at every state change: gathering, gathered, freed.
  using Watch = std::function<void(ZeroState state, const std::string& unit)>;
  explicit ShardedUnits(Watch watch = {}) : watch_(std::move(watch)) {}

  // `shard` must outlive this, and keep_shard() must have been called on it.
  void add(const std::string& unit, BucketShard& shard);

  void enter(const std::string& unit, const std::string& next) override;
  void leave(const std::string& unit) override;
  // Throws kInternal if a unit is gathered or being gathered: after a step none may be in use.
  void check_all_away() const;

 private:
  struct Unit {
    std::vector<BucketShard*> shards;
    int uses = 0;
    bool coming = false;  // being gathered, or gathered
  };
  void start(const std::string& name, Unit& unit);
  void tell(ZeroState state, const std::string& name) const;

  Watch watch_;
  std::map<std::string, Unit> units_;
};

}  // namespace ranklab
