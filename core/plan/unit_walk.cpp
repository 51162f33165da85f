#include "core/plan/unit_walk.h"

namespace ranklab {

UnitWalk::UnitWalk(const std::vector<PlannedBucket>& buckets, StepVisitor& visitor) : visitor_(visitor) {
  for (const bool expert : {false, true}) {
    for (const PlannedBucket& bucket : buckets) {
      if (bucket.is_expert != expert || bucket.layout.unit.empty() || bucket.shards == 1) continue;
      units_[bucket.layout.unit].gathers.push_back({bucket.axis, bucket.gathered_bytes()});
    }
  }
}

void UnitWalk::start(const std::string& name) {
  const auto unit = units_.find(name);
  if (unit == units_.end() || unit->second.coming) return;
  unit->second.coming = true;
  for (const Gather& gather : unit->second.gathers)
    unit->second.tickets.push_back(visitor_.post(gather.axis, Verb::kAllGather, gather.bytes));
}

void UnitWalk::enter(const std::vector<std::string>& units, const std::string& next) {
  for (const std::string& name : units) {
    start(name);
    if (&name == &units.back()) start(next);
    const auto unit = units_.find(name);
    if (unit == units_.end() || unit->second.uses++ > 0) continue;
    for (const int ticket : unit->second.tickets) visitor_.wait(ticket);
    unit->second.tickets.clear();
  }
}

void UnitWalk::leave(const std::vector<std::string>& units) {
  for (const std::string& name : units) {
    const auto unit = units_.find(name);
    if (unit != units_.end() && --unit->second.uses == 0) unit->second.coming = false;
  }
}

}  // namespace ranklab
