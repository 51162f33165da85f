// Steps of eight ranks, pp 2 x dp 4, on virtual clocks: ranks compute, the ranks of a stage add up gradients, all meet.
// Cost: some milliseconds. Thread rule: one thread.
#pragma once
#include <string>
#include <vector>

#include "lessons/16_who_is_slow/exercise.h"
#include "lessons/rank_run.h"

namespace ranklab::lesson {

struct Slowness {
  int rank = -1;       // with a slow device; -1: none
  double times = 1;    // its compute, over that of its peers
  double stage_1 = 1;  // work of stage 1 over that of stage 0
};

struct SlowWorld {
  std::vector<RankTime> ranks;  // of one step, in microseconds
  double step_us = 0;
  std::string insight;  // what the visualizer says costs most; "": nothing
};

SlowWorld slow_world(const Slowness& slowness);

}  // namespace ranklab::lesson
