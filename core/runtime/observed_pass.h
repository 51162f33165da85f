// Where a rank's host has waited for what comes next, and has launched no kernel ahead (core/sim/op_observer.h): at the
// beginning of a pass, and after gradients and their norm were reduced. Thread rule: its rank's thread.
#pragma once
#include "core/comm/rank_context.h"
#include "core/sim/op_observer.h"

namespace ranklab {

inline void begin_observed_pass(RankContext& ctx) {
  if (ctx.op_observer() != nullptr) ctx.op_observer()->begin_pass();
}

}  // namespace ranklab
