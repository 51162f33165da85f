// What simulated ranks can do. Torch-free. Thread rule: immutable.
#pragma once
#include "core/comm/backend.h"

namespace ranklab::cpu_sim {

// What ranks can do with tensors on any device: they are threads of one process.
inline constexpr Capabilities kAnywhere = {Capability::kVirtualTime, Capability::kMakesRanks, Capability::kHeldRanks,
                                           Capability::kMeasuredRanks};

inline constexpr Backend kBackendRow = {
    .name = "cpu_sim",
    .help = "simulated ranks with a virtual clock: threads, or processes started by a launcher",
    .on_host = kAnywhere.with(Capability::kHostTensors)
                   .with(Capability::kHostTransport)
                   .with(Capability::kPeerMemory)
                   .with(Capability::kEmulatedSums),
    .on_gpu = kAnywhere.with(Capability::kGpuTensors),
    .usual_bucket_bytes = 1 << 20,  // small enough that a tiny model has several
};

// Ranks that are processes communicate over sockets, and no thread sees all of them.
inline constexpr Capabilities kOfProcesses = kBackendRow.on_host.without(Capability::kMakesRanks)
                                                 .without(Capability::kPeerMemory)
                                                 .without(Capability::kHeldRanks)
                                                 .without(Capability::kMeasuredRanks);

}  // namespace ranklab::cpu_sim
