// The world of a plan, for runs that are compared.
#pragma once
#include "core/config/train_config.h"
#include "tests/cpu_sim/test_world.h"

namespace ranklab {

inline std::shared_ptr<World> world_of(const RunPlan& plan) { return make_test_world(plan.mesh.world_size()); }

}  // namespace ranklab
