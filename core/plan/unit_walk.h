// Parameters that a unit's use brings and frees (ZeRO stage 3), as core/parallel/sharded_units.h does it: an all_gather
// of each of the unit's buckets, posted while the unit before it computes. Torch-free. Thread rule: one thread.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/plan/planned_parameters.h"
#include "core/plan/step_walk.h"

namespace ranklab {

class UnitWalk {
 public:
  // Buckets without a unit, or that nobody shares, bring nothing. The visitor outlives this.
  UnitWalk(const std::vector<PlannedBucket>& buckets, StepVisitor& visitor);

  // Units are entered in this order; `next` may be brought meanwhile.
  void enter(const std::vector<std::string>& units, const std::string& next);
  void leave(const std::vector<std::string>& units);

 private:
  struct Gather {
    Axis axis = Axis::kDp;
    int64_t bytes = 0;
  };
  struct Unit {
    std::vector<Gather> gathers = {};
    std::vector<int> tickets = {};
    int uses = 0;
    bool coming = false;
  };
  void start(const std::string& name);

  StepVisitor& visitor_;
  std::map<std::string, Unit> units_;
};

}  // namespace ranklab
