#include "cli/make_world.h"

#include <chrono>

#include "backends/cpu_sim/thread_world.h"
#include "backends/cuda/cuda_backend.h"

namespace ranklab {

std::shared_ptr<World> make_world(const TrainConfig& config) {
  if (config.backend == "cuda") return make_cuda_world({});
  return make_thread_world(
      {.size = config.parallel.world,
       .collectives = config.collectives == "gloo" ? Collectives::kGloo : Collectives::kDirect,
       .transport = config.transport == "tcp" ? Transport::kTcp : Transport::kInproc,
       .hang_timeout = std::chrono::milliseconds(static_cast<int64_t>(config.hang_timeout_s * 1000)),
       .on_stuck = {}});
}

}  // namespace ranklab
