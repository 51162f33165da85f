// Every schedule of the list in many shapes: what the tests walk.
#pragma once
#include <vector>

#include "core/base/error.h"
#include "core/pipeline/schedules.h"

namespace ranklab {

// Of sums of times of about 1, in double.
inline constexpr double kTiny = 1e-9;

// Those of the requests that the kind takes; a refusal names both numbers, which schedules_test.cpp checks.
inline std::vector<Schedule> all_schedules(const std::vector<int>& ranks, const std::vector<int>& microbatches,
                                           const ScheduleCosts& costs = {}) {
  std::vector<Schedule> out;
  for (const ScheduleKind& kind : schedule_kinds()) {
    for (const int p : ranks) {
      for (const int m : microbatches) {
        for (const int v : kind.chunks == 0 ? std::vector<int>{1, 2, 3} : std::vector<int>{1}) {
          try {
            out.push_back(make_schedule(kind.name, {p, m, v}, costs));
          } catch (const Error&) {
          }
        }
      }
    }
  }
  return out;
}

}  // namespace ranklab
