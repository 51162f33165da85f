// A schedule as JSON: the `data` of `ranklab schedule ... --json`. Thread rule: pure functions.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "cli/schedule/schedule_source.h"

namespace ranklab {

nlohmann::ordered_json schedule_list_json();
nlohmann::ordered_json schedule_json(const LoadedSchedule& loaded, const ScheduleOptions& options,
                                     const PipelineTimeline& line);
// With every action's begin, end and slack.
nlohmann::ordered_json schedule_timeline_json(const LoadedSchedule& loaded, const ScheduleOptions& options,
                                              const PipelineTimeline& line);
nlohmann::ordered_json schedule_proof_json(const LoadedSchedule& loaded, const ScheduleOptions& options);

}  // namespace ranklab
