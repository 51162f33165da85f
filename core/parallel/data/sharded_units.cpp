#include "core/parallel/data/sharded_units.h"

#include "core/base/error.h"

namespace ranklab {

void ShardedUnits::add(const std::string& unit, BucketShard& shard) { units_[unit].shards.push_back(&shard); }

void ShardedUnits::tell(ZeroState state, const std::string& name) const {
  if (watch_) watch_(state, name);
}

void ShardedUnits::start(const std::string& name, Unit& unit) {
  if (unit.coming) return;
  unit.coming = true;
  for (BucketShard* shard : unit.shards) shard->start_gather();
  tell(ZeroState::kGathering, name);
}

// A unit that has no parameters on this rank, or is not sharded, is always available.
void ShardedUnits::enter(const std::string& name, const std::string& next) {
  const auto unit = units_.find(name);
  const auto following = units_.find(next);
  if (unit != units_.end()) start(name, unit->second);
  if (following != units_.end()) start(next, following->second);
  if (unit == units_.end() || unit->second.uses++ > 0) return;
  for (BucketShard* shard : unit->second.shards) shard->finish_gather();
  tell(ZeroState::kGathered, name);
}

void ShardedUnits::leave(const std::string& name) {
  const auto unit = units_.find(name);
  if (unit == units_.end() || --unit->second.uses > 0) return;
  for (BucketShard* shard : unit->second.shards) shard->free_whole();
  unit->second.coming = false;
  tell(ZeroState::kFreed, name);
}

void ShardedUnits::check_all_away() const {
  for (const auto& [name, unit] : units_) {
    RANKLAB_CHECK(!unit.coming && unit.uses == 0, ErrorKind::kInternal, .where = "ZeRO stage 3",
                  .what = "a unit's parameters are still there after a step", .got = name,
                  .fix = "each use that a model begins must end");
  }
}

}  // namespace ranklab
