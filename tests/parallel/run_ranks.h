// Runs a body on every rank of a thread world: what the tests of parallel, model and optim stand on.
#pragma once
#include <functional>

#include "backends/cpu_sim/thread_world.h"
#include "core/comm/rank_context.h"

namespace ranklab {

inline void run_ranks(const ParallelDims& dims, const std::function<void(RankContext&)>& body) {
  const DeviceMesh mesh(dims);
  const auto world = make_thread_world({.size = dims.world, .on_stuck = {}});
  world->run([&](Endpoint& endpoint) {
    RankContext context(endpoint, mesh, {.virtual_time = false, .trace = false});
    body(context);
  });
}

inline ParallelDims dims_of(int dp, int tp) {
  ParallelDims dims;
  dims.world = dp * tp;
  dims.tp = tp;
  return dims;
}

}  // namespace ranklab
