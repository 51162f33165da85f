// Eight ranks that make collective calls over tp, dp and pp until one of them leaves: where every rank ends, by the
// rules of collectives, and what the runtime reports if real ranks do the same. Cost: some milliseconds. Thread rule:
// one thread.
#pragma once
#include <string>
#include <vector>

#include "lessons/15_who_is_missing/exercise.h"

namespace ranklab::lesson {

struct StuckWorld {
  std::vector<std::vector<int>> members;  // by group
  std::vector<std::string> names;
  std::vector<std::vector<int>> made;  // by rank and group
  std::vector<int> waits_in;           // by rank; -1: none
  int culprit = 0;

  std::vector<GroupOfRanks> groups() const;
  std::vector<StuckRank> ranks() const;
  // The rank for which this one waits; -1: none.
  int waits_for(int rank) const;
  int hops_to_culprit(int rank) const;
};

// `culprit` leaves the run instead of making its call number `call` (counted from 0, over all of its groups).
StuckWorld stuck_world(int culprit, int call);
// The report of the runtime if real ranks do the same.
std::string reported(int culprit, int call);

}  // namespace ranklab::lesson
