// One process's rank of a CUDA world. Thread rule: one thread.
#pragma once
#include <memory>
#include <string>

#include "backends/cuda/cuda_backend.h"
#include "core/comm/process_env.h"
#include "core/comm/world.h"

namespace ranklab {

// Whether this process sees a GPU; says why not.
bool cuda_device_usable(std::string* why_not);

// The GPU is LOCAL_RANK's. Throws kEnvironment when there are fewer.
std::unique_ptr<World> make_nccl_world(const ProcessEnv& env, const CudaWorldOptions& options);

}  // namespace ranklab
