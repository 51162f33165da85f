// Steps of eight ranks, pp 2 x dp 4, on virtual clocks: ranks compute, the ranks of a stage sum their gradients, and
// all ranks meet. Cost: some milliseconds. Thread rule: one thread.
#pragma once
#include <string>
#include <vector>

#include "lessons/16_who_is_slow/exercise.h"
#include "lessons/rank_run.h"

namespace ranklab::lesson {

struct Slowness {
  int rank = -1;       // the rank with a slow device; -1: none
  double times = 1;    // its compute time relative to its peers
  double stage_1 = 1;  // work of stage 1 relative to stage 0
};

struct SlowWorld {
  std::vector<RankTime> ranks;  // of one step, in microseconds
  double step_us = 0;
  std::string insight;  // what the visualizer reports as costing most; "": nothing
};

SlowWorld slow_world(const Slowness& slowness);

}  // namespace ranklab::lesson
