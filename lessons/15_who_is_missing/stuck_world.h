// Eight ranks that make collective calls over tp, dp and pp, of which one leaves: where everybody ends, by the rules of
// collectives, and what the world says of it when real ranks do it. Cost: some milliseconds. Thread rule: one thread.
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

// `culprit` leaves the run instead of making its call number `call` (from 0, of all its groups).
StuckWorld stuck_world(int culprit, int call);
// What the runtime says when real ranks do the same.
std::string reported(int culprit, int call);

}  // namespace ranklab::lesson
