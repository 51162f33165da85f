// Every schedule of the list in many shapes: what the tests walk.
#pragma once
#include <vector>

#include "core/base/error.h"
#include "core/pipeline/overlap.h"
#include "core/pipeline/schedules.h"

namespace ranklab {

// Rounding of sums of times of about 1, in double.
inline constexpr double kTiny = 1e-9;

// Those of the requests that the kind takes; a refusal names both numbers, which schedules_test.cpp checks. Schedules
// with neighbours to pair come twice, as they are and paired.
inline std::vector<Schedule> all_schedules(const std::vector<int>& ranks, const std::vector<int>& microbatches,
                                           const ScheduleCosts& costs = {}) {
  std::vector<Schedule> out;
  for (const ScheduleKind& kind : schedule_kinds()) {
    for (const int p : ranks) {
      for (const int m : microbatches) {
        for (const int v : kind.chunks == 0 ? std::vector<int>{1, 2, 3} : std::vector<int>{1}) {
          for (const bool pairs : {false, true}) {
            const ScheduleRequest request{.num_ranks = p, .num_microbatches = m, .num_chunks = v, .pairs = pairs};
            try {
              const Schedule schedule = make_schedule(kind.name, request, costs);
              out.push_back(pairs ? overlap_neighbours(schedule) : schedule);
            } catch (const Error&) {
            }
          }
        }
      }
    }
  }
  return out;
}

// Rank 1 takes the microbatches the other way round: only there need and sending differ in order.
inline Schedule crossed_schedule() {
  Schedule schedule = make_schedule("1f1b", {2, 2, 1});
  schedule.ranks = {{forward(0, 0), forward(0, 1), backward(0, 0), backward(0, 1)},
                    {forward(1, 1), forward(1, 0), backward(1, 1), backward(1, 0)}};
  return schedule;
}

}  // namespace ranklab
