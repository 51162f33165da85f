// The kernels of some steps, recorded by PyTorch's own profiler (Kineto over CUPTI): every ATen op of rank 0 and, on a
// GPU, every kernel and copy, in the Chrome trace format of torch.profiler, so that `ranklab viz`, `ranklab trace
// stats` and Perfetto open it. Cost: some microseconds per op while recording, nothing in other steps. The file is
// written after the last recorded step; a run that is interrupted before that writes none. Thread rule: the hook runs
// on global rank 0's thread, and records the ops of that thread.
#pragma once
#include <memory>
#include <string>

#include "core/runtime/hooks.h"

namespace ranklab {

constexpr const char* kProfileFileName = "profile.json";  // in a run's folder

// Records those of the traced steps (core/config/traced_steps.h) that the run has. The hook throws kIo when `path`
// cannot be written, and kInvalidArgument if the run has none of these steps. Call it on the thread that loaded
// LibTorch. `on_gpu`: whether the run's tensors are in GPU memory; otherwise Kineto does not complain that it finds no
// GPU.
std::shared_ptr<Hook> make_torch_profile_hook(std::string path, bool on_gpu);

}  // namespace ranklab
