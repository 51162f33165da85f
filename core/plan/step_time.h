// How long a recorded step takes on its hardware profile and where the time goes, from the clocks of the simulated
// ranks themselves (core/sim). Values are for one rank; with a pipeline all but the total are the mean over its ranks.
// Thread rule: pure.
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
  double launches = 0;                                  // kernels
  std::map<Axis, double> exposed_ns;                    // communication that compute does not hide
  std::map<Axis, double> busy_ns;                       // time on the links
  double pipeline_idle_ns = 0;                          // waiting for other ranks of the pipeline
  double hidden_ns = 0;                                 // that compute takes longer beside collectives
  double pieces_ns = 0;                                 // handing out updated parameters one by one
  double slowest_ns = 0;                                // waiting for the slowest of many GPUs
  double exposed_total_ns() const;
};

StepTime time_of(const StepRecord& record);

// How far the total may deviate from the real run.
double step_time_tolerance(const RunPlan& plan);
// Whether ranks that may differ are few enough, by the layers that they have together, to run all: then none stands in
// for another.
bool may_run_all_ranks(const RunPlan& plan);
// Whether a pass's gathers of parameters wait for reductions that a pass before it began: how long depends on what a
// pipeline runs before it, so that no pass stands for the others.
bool reductions_delay_gathers(const RunPlan& plan);

// The model's FLOPs on one rank, of what its peak would do in that time.
double mfu(const RunPlan& plan, double step_ns);

}  // namespace ranklab
