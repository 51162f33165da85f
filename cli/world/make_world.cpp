#include "cli/world/make_world.h"

#include <chrono>
#include <cstdlib>

#include "backends/cpu_sim/processes/process_world.h"
#include "backends/cpu_sim/thread_world.h"
#include "backends/cuda/backend_row.h"
#include "backends/cuda/cuda_backend.h"
#include "cli/common/interrupt.h"
#include "cli/world/run_token.h"
#include "core/base/error.h"
#include "core/base/process_limit.h"
#include "core/base/system.h"

namespace ranklab {
namespace {

std::chrono::milliseconds milliseconds_of(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

}  // namespace

int64_t memory_of_ranks(const TrainConfig& config) {
  return config.can(Capability::kMakesRanks) && config.on_gpu() ? make_cuda_queues()->free_bytes() : 0;
}

std::shared_ptr<World> make_world(const TrainConfig& config, const ProcessEnv& env, std::shared_ptr<Stepper> stepper) {
  if (config.backend == kCudaBackendRow.name) {
    return make_cuda_world({.hang_timeout = milliseconds_of(config.hang_timeout_s),
                            .rendezvous_timeout = milliseconds_of(config.rendezvous_timeout_s),
                            .check_calls = config.check_calls,
                            .canonical_reductions = config.canonical_reductions,
                            .deterministic = config.deterministic,
                            .on_stuck = exit_if_caused_by_interrupt});
  }
  if (env.world_size > 1) {
    check_processes(config, env.world_size);
    require_descriptors(descriptors_of_rank(env.rank, env.world_size), "rank " + std::to_string(env.rank),
                        std::to_string(env.world_size) + " ranks in processes");
    const std::string listener = environment_variable(kListenerVariable);
    return make_process_world({.env = env,
                               .token = run_token_of_environment(),
                               .unix_sockets = config.transport != "tcp",
                               .listener_fd = listener.empty() || env.rank != 0 ? -1 : std::atoi(listener.c_str()),
                               .join_timeout = milliseconds_of(config.rendezvous_timeout_s),
                               .hang_timeout = milliseconds_of(config.hang_timeout_s),
                               .on_stuck = exit_if_caused_by_interrupt});
  }
  return make_thread_world({.size = config.parallel.world,
                            .collectives = config.collectives == "gloo" ? Collectives::kGloo : Collectives::kDirect,
                            .transport = config.transport == "tcp" ? Transport::kTcp : Transport::kInproc,
                            .device = config.on_gpu() ? make_cuda_queues() : nullptr,
                            .hang_timeout = milliseconds_of(config.hang_timeout_s),
                            .on_stuck = {},
                            .stepper = std::move(stepper)});
}

// Descriptors for other open files, and for connections to each peer, some of them temporary; rank 0 needs more for the
// rendezvous.
int descriptors_of_rank(int rank, int processes) { return 16 + processes * (rank == 0 ? 4 : 2); }

// Checks for ranks that are processes, which exchange bytes over Gloo.
void check_processes(const TrainConfig& config, int processes) {
  RANKLAB_CHECK(!config.can(Capability::kMakesRanks) || !config.on_gpu() || processes <= 1, ErrorKind::kInvalidArgument,
                .where = "--device", .what = "simulated ranks share a GPU as threads of one process",
                .got = "--device cuda, " + std::to_string(processes) + " processes", .want = "one process",
                .fix = "leave out launch, mpirun or torchrun; or use --backend cuda, a GPU for each process");
}

}  // namespace ranklab
