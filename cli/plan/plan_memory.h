// `ranklab plan memory`: prints the estimate of every rank's memory as text or as JSON, optionally compared with
// measurements. Thread rule: main thread.
#pragma once
#include "core/config/train_config.h"

namespace ranklab {

struct PlanMemoryRequest {
  bool json = false;
  bool measure = false;  // run two steps on simulated ranks and compare
};

// Prints the estimate. RETURNS: the exit code.
int run_plan_memory(const RunPlan& plan, const PlanMemoryRequest& request);

}  // namespace ranklab
