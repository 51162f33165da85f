#include "tests/viz/window/sample_traces.h"
#include "core/pipeline/schedules.h"
#include "core/pipeline/simulate.h"
#include "viz/model/store/schedule_store.h"

namespace ranklab::viz {
namespace {

TraceFile scheduled(int ranks, int microbatches) {
  const ScheduleCosts costs{.f = 1, .b = 1, .w = 1};
  const Schedule schedule =
      make_schedule("1f1b", {.num_ranks = ranks, .num_microbatches = microbatches, .num_chunks = 1}, costs);
  return schedule_file(schedule, simulate(schedule, costs));
}

}  // namespace

TraceFile one_f_one_b() { return scheduled(8, 32); }

TraceFile three_steps() {
  TraceFile file = scheduled(4, 8);
  for (RankTrace& rank : file.ranks) {
    const std::vector<Event> one = rank.events;
    rank.events.clear();
    for (int step = 0; step < 3; ++step) {
      const int64_t later = step * kThreeStepsLength;
      for (Event event : one) {
        event.step = step;
        for (int64_t* time : {&event.virtual_begin_ns, &event.virtual_end_ns, &event.virtual_posted_ns,
                              &event.virtual_matched_ns, &event.virtual_first_byte_ns})
          if (*time != kNoTime) *time += later;
        if (event.kind == EventKind::kCollective) event.sequence += step * 100;
        rank.events.push_back(event);
      }
    }
  }
  return file;
}

TraceStore in_units(TraceFile file) {
  TraceStore store(std::move(file));
  store.set_unit_ns(kScheduleUnitNs);
  return store;
}

}  // namespace ranklab::viz
