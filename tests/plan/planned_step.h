// The time of a planned step, as the documentation gives it. Thread rule: main thread.
#pragma once
#include <cmath>

#include "backends/meta/meta_world.h"
#include "core/plan/record_step.h"

namespace ranklab {

inline long long planned_step_ms(const TrainConfig& config) {
  return std::llround(static_cast<double>(record_step(resolve(config), make_meta_world).step_ns) * 1e-6);
}

}  // namespace ranklab
