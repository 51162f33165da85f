// Selects the backend of a configuration, and whether its ranks are threads or processes. This is the only place in the
// program that names all backends.
#pragma once
#include <memory>

#include "cli/config/config_options.h"
#include "core/comm/process_env.h"
#include "core/comm/world.h"
#include "core/config/train_config.h"
#include "core/live/stepper.h"

namespace ranklab {

// Variables that `ranklab launch` passes to its ranks besides torchrun's.
inline constexpr const char* kRunTokenVariable = "RANKLAB_RUN_TOKEN";      // the run's secret
inline constexpr const char* kListenerVariable = "RANKLAB_RDZV_LISTENER";  // rank 0: a listening descriptor

// Ranks of cpu_sim are processes when `env` is one of several, else threads of this one.
// `stepper` may be null; it controls ranks that are threads.
std::shared_ptr<World> make_world(const TrainConfig& config, const ProcessEnv& env = {},
                                  std::shared_ptr<Stepper> stepper = nullptr);

// The world of a run whose ranks are threads of this process.
inline std::shared_ptr<World> simulated_world(const RunPlan& plan) { return make_world(plan.config); }

// Number of file descriptors that such a rank has open (require_descriptors()).
int descriptors_of_rank(int rank, int processes);

// Throws kInvalidArgument when ranks cannot be processes with this configuration.
void check_processes(const TrainConfig& config, int processes);

// Free memory of the GPU that simulated ranks will share. 0: they use host memory.
int64_t memory_of_ranks(const TrainConfig& config);

}  // namespace ranklab
