// Describes the backend in which each rank has its own GPU. Torch-free. Thread rule: immutable.
#pragma once
#include "core/comm/backend.h"

namespace ranklab {

inline constexpr Backend kCudaBackendRow = {
    .name = "cuda",
    .help = "one process and one GPU per rank, connected by NCCL",
    .on_host = {},
    .on_gpu = {Capability::kGpuTensors, Capability::kRecordedPasses},
    .usual_bucket_bytes = 25 << 20,
};

}  // namespace ranklab
