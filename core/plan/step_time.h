// How long one step takes on a hardware profile, estimated without running it: the kernels of step_walk.h advance a
// compute stream by the roofline, collectives run on a stream per axis by the alpha-beta model, and a wait moves the
// compute stream to the end of what it waits for: the rules of the simulated ranks themselves (core/sim,
// core/comm/traced_communicator.h), for ranks whose peers are as fast. In a pipeline the actions begin when the
// simulated schedule says. Within kStepTimeTolerance of the virtual step time of real runs (tests/plan); what it does
// not know is the exact number of small kernels and waiting for peers. Cost: one walk of the step per pipeline rank.
// Thread rule: pure.
#pragma once
#include <map>

#include "core/base/vocabulary.h"
#include "core/comm/device_mesh.h"
#include "core/plan/step_shape.h"
#include "core/sim/hardware_profile.h"

namespace ranklab {

constexpr double kStepTimeTolerance = 0.05;

// Of a rank; in a pipeline, but for the total, the mean over its ranks.
struct StepTime {
  double total_ns = 0;
  double compute_ns = 0;
  double flops = 0;                   // of matrix products and attention
  std::map<Axis, double> exposed_ns;  // communication that compute does not hide
  std::map<Axis, double> busy_ns;     // time on the links
  double pipeline_idle_ns = 0;        // waiting for other ranks of the pipeline and their messages
  double exposed_total_ns() const;
};

StepTime estimate_step_time(const StepShape& shape, const Schedule& schedule, const DeviceMesh& mesh,
                            const HardwareProfile& profile, int gpus_per_node);

}  // namespace ranklab
