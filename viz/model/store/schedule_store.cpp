#include "viz/model/store/schedule_store.h"

#include "core/pipeline/csv.h"
#include "core/pipeline/verify.h"

namespace ranklab::viz {

TraceFile schedule_file(const Schedule& schedule, const PipelineTimeline& line, double c) {
  TraceFile file;
  file.schema_version = 1;
  file.world_size = schedule.num_ranks();
  file.clock = TraceClock::kVirtual;
  file.ranks = schedule_trace(schedule, line, c);
  return file;
}

TraceStore schedule_store(const Schedule& schedule, const PipelineTimeline& line, double c) {
  TraceStore store(schedule_file(schedule, line, c), schedule.name);
  store.set_unit_ns(kScheduleUnitNs);
  return store;
}

TraceStore schedule_store(const Schedule& schedule, const ScheduleCosts& costs) {
  return schedule_store(schedule, simulate(schedule, costs), costs.c);
}

TraceStore schedule_store_from_csv(const std::string& path, const ScheduleCosts& costs) {
  const ScheduleFile file = read_schedule(path, ScheduleDialect::kAuto);
  require_legal(costs);
  require_sound(file.schedule);
  return schedule_store(file.schedule, costs);
}

}  // namespace ranklab::viz
