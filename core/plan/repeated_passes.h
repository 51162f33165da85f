// Which microbatches of a schedule a recorded rank really runs: for each stage the first (which produces the first
// gradients), the second (which all later ones repeat), and the last (whose gradients are reduced); and, where some
// passes are interleaved, one of each kind that is and one that is not. Torch-free. Thread rule: immutable.
#pragma once
#include <set>
#include <vector>

#include "core/pipeline/schedule.h"

namespace ranklab {

class RepeatedPasses {
 public:
  // `pairs`: the two passes of an FBW are interleaved. `all`: every microbatch really runs, because each may have a
  // different cost.
  RepeatedPasses(const Schedule& schedule, int pp_rank, bool pairs, bool all);

  // `local_stage`: an index among the rank's own stages, as in Schedule::stages_of().
  bool runs(int local_stage, int microbatch) const;
  // The index of a microbatch that runs among those of its stage that run.
  int number_of(int local_stage, int microbatch) const;
  // The microbatch of the rank's `nth` forward in a stage, counted from 0.
  int forward_at(int local_stage, int nth) const;
  // The number of microbatches that run, over all chains of the schedule.
  int count() const { return count_; }

 private:
  struct Stage {
    std::vector<int> forwards;  // in schedule order
    std::set<int> run;
  };
  std::vector<Stage> stages_;
  int count_ = 0;
};

}  // namespace ranklab
