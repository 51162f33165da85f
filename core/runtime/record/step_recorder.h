// What one rank records of its training steps: spans of modules and kernels, counters of the metrics, and the
// boundaries where a stepper may hold the rank, in steps that the trace keeps or that somebody watches; and when its
// events go to rank 0. Thread rule: its rank's thread.
#pragma once
#include <memory>
#include <vector>

#include "core/config/traced_steps.h"
#include "core/live/stepper_state.h"
#include "core/runtime/components.h"
#include "core/runtime/record/module_tracer.h"
#include "core/runtime/record/trace_gather.h"

namespace ranklab {

class StepRecorder {
 public:
  struct Options {
    RankHolder* stepper = nullptr;  // null: none
    EventSink* sink = nullptr;      // gets each event as it happens; null: none
    // Traces are handed out after steps, rather than all at the end.
    bool streams = false;
    bool has_processes = false;  // ranks are processes, between which handing out costs an exchange
  };
  // The context and the plan outlive this.
  StepRecorder(RankContext& ctx, const RunPlan& plan, const Options& options);

  ModuleTracer& modules() { return modules_; }

  void begin_run(int64_t first_step) { traced_ = traced_steps(plan_.config, first_step); }
  void begin_step(int64_t step, ModuleHooks& hooks);
  void hold_at(BoundaryKind kind);  // of the step that has begun
  void observe_loss(const StepOutput& output);
  void count(const StepMetrics& metrics);
  void end_step();
  void stop() { ctx_.tracer().set_enabled(false); }

  // After this step, on this rank; all ranks hand out if one wants to.
  bool must_gather_traces(int64_t step) const;
  // Collective over `world`. RETURNS: the events of all ranks since the last call, on rank 0.
  std::shared_ptr<const std::vector<RankTrace>> hand_out(TraceCollector& collector, Communicator& world);
  // What hand_out() has not taken. With all at the end, that is the whole trace.
  RankTrace take_rest();

 private:
  void watch_modules(ModuleHooks& hooks);
  void count(const char* name, double value);

  RankContext& ctx_;
  const RunPlan& plan_;
  Options options_;
  ModuleTracer modules_;
  TracedSteps traced_;
  int64_t handed_out_ns_ = 0;  // when traces were last handed out
};

}  // namespace ranklab
