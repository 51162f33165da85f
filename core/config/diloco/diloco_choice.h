// Which ranks form a DiLoCo replica, and over which ranks gradients are reduced. Thread rule: pure functions.
#pragma once
#include "core/config/train_config.h"

namespace ranklab {

// With DiLoCo: derives the number of groups of ranks, and checks its settings against the mesh. Throws
// kInvalidArgument.
void settle_diloco(TrainConfig& config);

// The axis over which each step's gradients of dense parameters are reduced, and that of experts' gradients.
inline Axis gradient_axis(const RunPlan& plan) {
  return plan.config.diloco.enabled() ? Axis::kDpShard : plan.mesh.replica_axis();
}
inline Axis expert_gradient_axis(const RunPlan& plan) {
  return plan.config.diloco.enabled() ? Axis::kEdpShard : Axis::kEdp;
}

}  // namespace ranklab
