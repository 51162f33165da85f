// The kernels of some steps, as PyTorch's own profiler sees them (Kineto over CUPTI): every ATen op of rank 0 and, on a
// GPU, every kernel and copy, as the Chrome trace that torch.profiler writes, so that `ranklab viz`, `ranklab trace
// stats` and Perfetto open it. Cost: some microseconds an op while it records, nothing in other steps; the file is
// written when the last recorded step has ended; a run that is interrupted before writes none. Thread rule: the hook
// runs on global rank 0's thread, and records the ops of that thread.
#pragma once
#include <memory>
#include <string>

#include "core/runtime/hooks.h"

namespace ranklab {

// Steps [first, end) of those that the run has. The hook throws kIo when `path` cannot be written.
std::shared_ptr<Hook> make_torch_profile_hook(std::string path, int64_t first, int64_t end);

}  // namespace ranklab
