// Lesson 15: seven ranks wait, and one has never come.
#pragma once
#include <span>

namespace ranklab::lesson {

// Ranks that make collective calls together, each the same calls in the same order.
struct GroupOfRanks {
  const char* name;              // "tp of ranks 4 and 5"
  std::span<const int> members;  // global ranks
};

// The state of a rank when nothing moves any more.
struct StuckRank {
  // The number of calls it has made in each group, in the order of the groups, including the one it waits in. 0 where
  // it is not a member.
  std::span<const int> made;
  int waits_in;  // the group in whose call it waits, its last one there; -1: it does not wait
};

}  // namespace ranklab::lesson

extern "C" {
// Warm-up. Whether the rank has made its call number `call` (they count from 1) in the group.
bool has_come(const ranklab::lesson::StuckRank& rank, int group, int call);
// ranks: of the world, by their number. RETURNS: the rank that all others wait for, directly or through each other.
int missing_rank(std::span<const ranklab::lesson::StuckRank> ranks,
                 std::span<const ranklab::lesson::GroupOfRanks> groups);
}
