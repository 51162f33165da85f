// How long a recorded step takes on its hardware profile, and where the time goes, from the clocks of the simulated
// ranks (core/sim). Values are per rank; with a pipeline, all values except the total are means over its ranks. Thread
// rule: pure.
#pragma once
#include <array>
#include <map>

#include "core/config/train_config.h"
#include "core/plan/step_record.h"

namespace ranklab {

struct StepTime {
  double total_ns = 0;
  double compute_ns = 0;
  double flops = 0;                                     // of GEMMs and attention
  std::array<double, KernelShape::kKinds> kernel_ns{};  // compute by kind of kernel
  double launch_ns = 0;                                 // compute waiting for its host to launch kernels
  double launches = 0;                                  // number of kernels
  std::map<Axis, double> exposed_ns;                    // communication that compute does not hide
  std::map<Axis, double> busy_ns;                       // time on the links
  double pipeline_idle_ns = 0;                          // waiting for other ranks of the pipeline
  AddedTime added = {};                                 // the record's
  double exposed_total_ns() const;
};

StepTime time_of(const StepRecord& record);

// How far the total may deviate from the real run.
double step_time_tolerance(const RunPlan& plan);
// Whether the ranks that may differ are few enough, measured by the total of their layers, to run all of them, so that
// none stands in for another.
bool may_run_all_ranks(const RunPlan& plan);
// Whether a pass's gathers of parameters wait for reductions that an earlier pass started. How long they wait depends
// on what the pipeline ran before the pass, so no pass can represent the others.
bool reductions_delay_gathers(const RunPlan& plan);
// Whether passes that take turns use parameters that one of them has gathered. Which of them gathers depends on both.
bool passes_share_gathers(const RunPlan& plan);

// What the tolerances require: " with evenly loaded experts"; "" if all runs of the plan fulfil it.
std::string tolerance_condition(const RunPlan& plan);

// The model's FLOPs on one rank, as a fraction of what its peak could do in that time.
double mfu(const RunPlan& plan, double step_ns);

}  // namespace ranklab
