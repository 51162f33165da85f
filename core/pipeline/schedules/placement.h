// Which rank holds which stage. Thread rule: pure functions.
#pragma once

#include "core/pipeline/schedule.h"

namespace ranklab {

// Stage s on rank s % p: one stage per rank, or several in a loop.
inline Schedule looped(std::string name, const ScheduleRequest& request, int chunks) {
  Schedule schedule{std::move(name), request.num_microbatches, {}, request.num_ranks * chunks, {}};
  for (int stage = 0; stage < schedule.chain_length; ++stage)
    schedule.rank_of_stage.push_back(stage % request.num_ranks);
  schedule.ranks.resize(static_cast<size_t>(request.num_ranks));
  return schedule;
}

// Stages r and 2p-1-r on rank r: down and back up, so rank 0 has the first and the last stage.
inline Schedule v_shaped(std::string name, const ScheduleRequest& request) {
  const int p = request.num_ranks;
  Schedule schedule{std::move(name), request.num_microbatches, {}, 2 * p, {}};
  for (int stage = 0; stage < 2 * p; ++stage) schedule.rank_of_stage.push_back(stage < p ? stage : 2 * p - 1 - stage);
  schedule.ranks.resize(static_cast<size_t>(p));
  return schedule;
}

}  // namespace ranklab
