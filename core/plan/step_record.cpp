#include "core/plan/step_record.h"

#include <algorithm>
#include <numeric>

namespace ranklab {

int64_t together(const CategoryBytes& bytes) { return std::accumulate(bytes.begin(), bytes.end(), int64_t{0}); }

const RankRecord& StepRecord::of_pipeline_rank(int pp_rank) const {
  return *std::ranges::find(ranks, pp_rank, &RankRecord::pp_rank);
}
const RankRecord& StepRecord::fullest() const {
  return *std::ranges::max_element(ranks, {}, [](const RankRecord& rank) { return together(rank.at_peak); });
}
int64_t StepRecord::pass_ns() const {
  return std::accumulate(ranks.begin(), ranks.end(), int64_t{0},
                         [](int64_t sum, const RankRecord& rank) { return sum + rank.pass_ns; });
}

}  // namespace ranklab
