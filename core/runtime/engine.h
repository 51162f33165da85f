// The training loop: builds each rank's parts in order, runs steps, reduces metrics, calls hooks. Every run is a
// World::run; an exception on any rank ends it and names that rank.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "core/live/live_feed.h"
#include "core/live/stepper.h"
#include "core/runtime/components.h"
#include "core/runtime/hooks.h"
#include "core/runtime/observe/lost_outputs.h"
#include "core/runtime/observe/module_watch.h"
#include "core/runtime/plan_of_run.h"
#include "core/runtime/record/trace_gather.h"
#include "core/spmd/rank_partitions.h"
#include "core/spmd/type_report.h"

namespace ranklab {

class RuntimeEngine {
 public:
  RuntimeEngine(RuntimeComponents components, RunPlan plan);

  void add_hook(std::shared_ptr<Hook> hook) { hooks_.push_back(std::move(hook)); }
  // Called for each use of a module whose path matches the pattern (a glob), forward and backward, in training steps on
  // the threads of all ranks. fit() throws kInvalidArgument where no module of any rank matches.
  void add_hook(std::string pattern, std::function<void(const ModuleCall&)> call) {
    watches_.push_back({std::move(pattern), std::move(call)});
  }
  // The folder to which dumped tensors are written if the plan has no log_dir, as seen by rank 0's process. If neither
  // is set, it is the current folder.
  void set_output_folder(std::string folder) { output_folder_ = std::move(folder); }
  // Where a dump that cannot be written is recorded; without it, such a dump ends the run.
  void set_lost_outputs(std::shared_ptr<LostOutputs> lost) { lost_ = std::move(lost); }
  // Called after every step on one rank of each process; if any call returns true, the run ends after that step on all
  // ranks (SIGINT).
  void set_stop_request(std::function<bool()> stop) { stop_ = std::move(stop); }
  // Called on every rank with the trained model after the last step, but not after an interruption. Updated parameters
  // may still be on their way (RankOptimizer::settle_parameters()).
  void set_finale(std::function<void(StepContext&)> finale) { finale_ = std::move(finale); }
  // The types of the first step's tensors are checked (core/spmd), and errors are left in `report`. Without a report,
  // and with check_gradient_types, fit() throws the first error after that step.
  void set_type_report(std::shared_ptr<TypeReport> report) { type_report_ = std::move(report); }
  // Lets a debugger pause training steps and follow their events live, for ranks of this process. The world must have
  // the same stepper.
  void set_stepper(std::shared_ptr<Stepper> stepper) { stepper_ = std::move(stepper); }
  // The clock used by sentinels of wall time; by default the host's.
  void set_wall_clock(std::function<int64_t()> wall_ns) { wall_ns_ = std::move(wall_ns); }
  void set_live_feed(std::shared_ptr<LiveFeed> feed) { live_feed_ = std::move(feed); }

  // Hooks receive the ranks' traces after each traced step instead of all at the end, so memory does not grow with the
  // number of steps; TrainResult::traces stays empty. Ranks that are processes send theirs once one of them has
  // recorded many events.
  void stream_traces() { streams_traces_ = true; }

  // Trains until `steps` optimizer steps are done (default: the plan's, steps_of_run()).
  TrainResult fit(int64_t steps = -1);

  const RunPlan& plan() const { return plan_; }

 private:
  class RankLoop;
  bool watched() const { return stepper_ || live_feed_; }

  RuntimeComponents components_;
  RunPlan plan_;
  std::vector<std::shared_ptr<Hook>> hooks_;
  std::function<bool()> stop_;
  std::function<void(StepContext&)> finale_;
  std::shared_ptr<TypeReport> type_report_;
  std::unique_ptr<const RankPartitions> partitions_;  // null: types are not followed
  std::shared_ptr<Stepper> stepper_;
  std::shared_ptr<LiveFeed> live_feed_;
  std::function<int64_t()> wall_ns_;
  std::vector<ModuleWatch> watches_;
  std::string output_folder_;
  std::shared_ptr<LostOutputs> lost_;
  bool streams_traces_ = false;
  std::unique_ptr<TraceCollector> collector_;
  std::unique_ptr<PlanOfRun> plan_of_run_;  // set by fit()
};

}  // namespace ranklab
