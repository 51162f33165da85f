// The kernels of some steps, recorded by PyTorch's own profiler (Kineto over CUPTI): every ATen op of rank 0 and, on a
// GPU, every kernel and copy, as the Chrome trace that torch.profiler writes, so that `ranklab viz`, `ranklab trace
// stats` and Perfetto open it. Cost: some microseconds per op while recording, nothing in other steps; the file is
// written after the last recorded step; a run that is interrupted before writes none. Thread rule: the hook runs on
// global rank 0's thread, and records the ops of that thread.
#pragma once
#include <memory>
#include <string>

#include "core/runtime/hooks.h"

namespace ranklab {

constexpr const char* kProfileFileName = "profile.json";  // in a run's folder

// Records the traced steps (core/config/traced_steps.h) that the run has. The hook throws kIo when `path` cannot be
// written, kInvalidArgument where the run has none of them.
std::shared_ptr<Hook> make_torch_profile_hook(std::string path);

}  // namespace ranklab
