// The schedule of a `ranklab schedule` command: a NAME of the list or a FILE, and the costs with which it is timed.
// Thread rule: pure functions, except for the file.
#pragma once
#include <optional>
#include <string>

#include "cli/schedule/schedule_model.h"
#include "core/pipeline/csv.h"
#include "core/pipeline/schedules.h"
#include "core/pipeline/simulate.h"
#include "core/pipeline/trace_costs.h"
#include "core/pipeline/verify.h"

namespace ranklab {

struct ScheduleOptions {
  std::optional<int> num_ranks;  // 4 if not given
  std::optional<int> num_microbatches;
  std::optional<int> num_chunks;
  int group_size = 0;  // 0: the fewest possible
  bool pairs = false;  // a backward and the next forward run as one pair
  // The values of --f, --b, --w, --c. W needs as much of an activation as in the 14.6B model of Qi et al. (arXiv
  // 2401.10241, appendix). If it needed all of it, a search within a memory limit would place W where they fit and not
  // where ranks are idle.
  ScheduleCosts costs = {.weight_grad_memory = 0.432};
  std::string trace;  // a file to take the costs from
  std::optional<PipelineCosts> of_trace;
  ScheduleModel model;  // or a model and a machine
  std::string dialect = "auto";
};

struct LoadedSchedule {
  Schedule schedule;
  std::optional<ScheduleFile> file;    // if it came from a file; its schedule is moved out
  ScheduleCosts costs;                 // per rank
  std::optional<PipelineCosts> known;  // of each stage, from a trace or a model
  ScheduleProof proof;
  // Problems: first the messages of a file, then those of the schedule.
  std::vector<std::string> problems() const;
};

// Reads options.trace. Throws kInvalidArgument if the costs are given in two ways.
void read_costs(ScheduleOptions& options);

// `what`: a schedule's name, or else a path. Throws if it is neither, suggesting the nearest name, and for a file that
// contradicts --pp or --num-microbatches.
LoadedSchedule load_schedule(const std::string& what, const ScheduleOptions& options);
// Throws kCheckFailed with the first problem.
void require_sound(const LoadedSchedule& loaded, const std::string& what);
PipelineTimeline time_of(const LoadedSchedule& loaded);

}  // namespace ranklab
