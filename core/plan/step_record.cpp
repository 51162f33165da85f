#include "core/plan/step_record.h"

#include <algorithm>
#include <numeric>

namespace ranklab {

RankTime RankTime::since(const RankTime& before) const {
  RankTime spent = *this;
  spent.begin_ns = before.end_ns;
  spent.compute_ns -= before.compute_ns;
  for (size_t axis = 0; axis < exposed_ns.size(); ++axis) spent.exposed_ns[axis] -= before.exposed_ns[axis];
  spent.waited_ns -= before.waited_ns;
  spent.flops -= before.flops;
  spent.kernel_times = kernel_times.since(before.kernel_times);
  return spent;
}

std::string StepRecord::documents_warning() const {
  return documents_unknown.empty() ? "" : "attention counts each sequence as one document: " + documents_unknown;
}
const RankRecord& StepRecord::of_pipeline_rank(int pp_rank) const {
  return *std::ranges::find(ranks, pp_rank, &RankRecord::pp_rank);
}
const RankRecord& StepRecord::fullest() const {
  return *std::ranges::max_element(ranks, {}, [](const RankRecord& rank) { return together(rank.at_peak); });
}
void StepRecord::keep_fuller(const StepRecord& other) {
  for (RankRecord& rank : ranks) {
    const RankRecord& peer = other.of_pipeline_rank(rank.pp_rank);
    if (together(peer.at_peak) <= together(rank.at_peak)) continue;
    rank.at_peak = peer.at_peak;
    rank.highest = peer.highest;
    rank.after = peer.after;
  }
}
int64_t StepRecord::pass_ns() const {
  return std::accumulate(ranks.begin(), ranks.end(), int64_t{0},
                         [](int64_t sum, const RankRecord& rank) { return sum + rank.pass_ns; });
}
int64_t StepRecord::latest(int64_t RankTime::*when) const {
  return std::ranges::max_element(ranks, {}, [&](const RankRecord& rank) { return rank.time.*when; })->time.*when;
}

}  // namespace ranklab
