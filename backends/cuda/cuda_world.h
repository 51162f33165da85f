// One process's rank of a CUDA world. Thread rule: one thread.
#pragma once
#include <memory>
#include <string>

#include "backends/cuda/cuda_backend.h"
#include "core/comm/process_env.h"
#include "core/comm/world.h"

namespace ranklab {

// Whether this process sees a GPU; if not, *why_not says why.
bool cuda_device_usable(std::string* why_not);

// Uses the GPU of LOCAL_RANK. Throws kEnvironment if there are fewer GPUs.
std::unique_ptr<World> make_nccl_world(const ProcessEnv& env, const CudaWorldOptions& options);

}  // namespace ranklab
