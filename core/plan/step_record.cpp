#include "core/plan/step_record.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace ranklab {

std::string StepRecord::documents_warning() const {
  return documents_unknown.empty() ? "" : "attention counts each sequence as one document: " + documents_unknown;
}
const RankRecord& StepRecord::of_pipeline_rank(int pp_rank) const {
  return *std::ranges::find(ranks, pp_rank, &RankRecord::pp_rank);
}
const RankRecord& StepRecord::fullest() const {
  return *std::ranges::max_element(ranks, {}, [](const RankRecord& rank) { return together(rank.at_peak); });
}
void RankRecord::keep_fuller(const RankRecord& other) {
  if (together(other.at_peak) <= together(at_peak)) return;
  at_peak = other.at_peak;
  highest = other.highest;
  after = other.after;
}
void StepRecord::keep_fuller(const StepRecord& other) {
  for (RankRecord& rank : ranks) rank.keep_fuller(other.of_pipeline_rank(rank.pp_rank));
}
void StepRecord::keep_slowest_of_stages() {
  std::ranges::stable_sort(ranks, {}, [](const RankRecord& rank) { return rank.time.waited_ns; });
  std::vector<RankRecord> slowest;
  for (const RankRecord& rank : ranks) {
    const auto of_stage = std::ranges::find(slowest, rank.pp_rank, &RankRecord::pp_rank);
    if (of_stage == slowest.end())
      slowest.push_back(rank);
    else
      of_stage->keep_fuller(rank);
  }
  std::ranges::sort(slowest, {}, &RankRecord::global_rank);
  ranks = std::move(slowest);
  std::erase_if(traces, [&](const RankTrace& trace) {
    return std::ranges::find(ranks, trace.global_rank, &RankRecord::global_rank) == ranks.end();
  });
}
int64_t StepRecord::pass_ns() const {
  return std::accumulate(ranks.begin(), ranks.end(), int64_t{0},
                         [](int64_t sum, const RankRecord& rank) { return sum + rank.pass_ns; });
}
int64_t StepRecord::latest(int64_t RankTime::*when) const {
  return std::ranges::max_element(ranks, {}, [&](const RankRecord& rank) { return rank.time.*when; })->time.*when;
}

}  // namespace ranklab
