#include "viz/panels/timeline/growing.h"

#include <algorithm>

namespace ranklab::viz {
namespace {

// The end of what is drawn in the rank's rows, except phases, because these enclose what is still to come.
int64_t recorded_until(const TraceStore& store, size_t rank) {
  int64_t end = store.range().begin_ns;
  for (const Row& row : store.rank(rank).rows)
    for (const Track& track : row.tracks)
      if (row.label != "phase" && track.size() > 0) end = std::max(end, track.end_ns.back());
  return end;
}

std::string words_of(const RankState& rank) {
  switch (rank.activity) {
    case RankActivity::kParked:
      return "parked at " + to_text(rank.at);
    case RankActivity::kBlocked: {
      std::string words = "waits for";
      for (const int other : rank.waits_for) words += " r" + std::to_string(other);
      return rank.waits_for.empty() ? "waits in " + rank.inside : words;
    }
    default:
      return "runs";
  }
}

}  // namespace

std::vector<GrowingBlock> growing_blocks(const TraceStore& store, const StepperState& state) {
  std::vector<GrowingBlock> blocks;
  if (store.clock() != TraceClock::kVirtual || state.mode == StepperMode::kEnded) return blocks;
  int64_t now = store.range().end_ns;
  for (const RankState& rank : state.ranks) now = std::max(now, rank.virtual_ns);
  for (const RankState& rank : state.ranks) {
    const auto index = store.index_of_rank(rank.global_rank);
    if (!index || rank.activity == RankActivity::kDone) continue;
    const int64_t from = std::min(recorded_until(store, *index), now);
    blocks.push_back({*index, {from, now}, rank.activity, words_of(rank)});
  }
  return blocks;
}

}  // namespace ranklab::viz
