// Where the members of a group diverge: for one group, a table of ranks x sequence numbers with the call that each
// member made, and the first number at which they differ. Cost: O(events x log of a group's calls). Thread rule: pure.
#pragma once
#include <string>
#include <vector>

#include "viz/model/store/trace_store.h"

namespace ranklab::viz {

struct MismatchView {
  Axis axis = Axis::kWorld;
  std::vector<int> group;
  int64_t first_sequence = 0;
  struct Cell {
    bool made = false;
    Verb verb = Verb::kBarrier;
    DType dtype = DType::kOther;
    int64_t logical_bytes = 0;
    EventRef event;
    bool operator==(const Cell& other) const {
      return made == other.made && verb == other.verb && dtype == other.dtype && logical_bytes == other.logical_bytes;
    }
  };
  std::vector<std::vector<Cell>> cells;  // [member][sequence - first_sequence]
  int64_t divergence = -1;               // first sequence at which members differ; -1: none
  std::vector<int> odd_ranks;            // those that differ from most members there
  std::string verdict;                   // "rank 2 did not make call 14 (all_reduce, fp32, 4 KiB) of dp"; "" if none
};
// One view per group of collectives (messages have no common sequence), groups with a divergence first. At most `width`
// calls per group: around the divergence, or the last ones.
std::vector<MismatchView> mismatch_views(const TraceStore& store, int width = 64);

}  // namespace ranklab::viz
