// What each stage of a pipeline costs on a machine, without a run: the kernels and collectives of its F, B, W and BW
// (stage_walk.h) on a hardware profile. For simulations of schedules and for step times. Cost: one walk of each stage.
// Thread rule: pure.
#pragma once
#include <vector>

#include "core/comm/device_mesh.h"
#include "core/pipeline/simulate.h"
#include "core/plan/step_shape.h"
#include "core/sim/hardware_profile.h"

namespace ranklab {

// Microseconds. From a profile and a model (here) or from a traced run (trace_costs.h).
struct PipelineCosts {
  std::vector<StageCost> stages;
  double c = 0;        // of a message between ranks
  bool split = true;   // B and W are known apart; else each is half of BW
  ScheduleCosts mean;  // of a rank, for schedules that are searched by cost
};

// Of the stages on a rank, each microbatch once: `ranks` per chain of stages. REQUIRES: stages and c filled.
ScheduleCosts mean_of_rank(const PipelineCosts& costs, double ranks);

PipelineCosts pipeline_costs(const StepShape& shape, const Schedule& schedule, const DeviceMesh& mesh,
                             const HardwareProfile& profile, int gpus_per_node);

}  // namespace ranklab
