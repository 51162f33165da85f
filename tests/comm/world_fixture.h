// Small helpers of the comm tests: a thread world, and a profile whose times can be computed in one's head.
#pragma once
#include <functional>
#include <numeric>

#include "backends/cpu_sim/thread_world.h"
#include "core/sim/hardware_profile.h"

namespace ranklab::comm_test {

// One hop takes 1000 ns, a link moves 1 byte per ns; between nodes 5000 ns and a quarter of that.
inline HardwareProfile simple_profile() {
  HardwareProfile profile;
  profile.name = "simple";
  profile.peak_flops_fp32 = profile.peak_flops_fp64 = profile.peak_flops_16bit = profile.peak_flops_fp8 = 1e12;
  profile.memory_bandwidth = 1e12;
  profile.intra_node = {.latency_ns = 1000, .bandwidth_bytes_per_ns = 1};
  profile.inter_node = {.latency_ns = 5000, .bandwidth_bytes_per_ns = 0.25};
  return profile;
}

inline Group all_ranks(const Endpoint& endpoint, Axis axis = Axis::kTp) {
  Group group{.axis = axis,
              .global_ranks = std::vector<int>(static_cast<size_t>(endpoint.world_size())),
              .group_rank = endpoint.global_rank()};
  std::iota(group.global_ranks.begin(), group.global_ranks.end(), 0);
  return group;
}

inline void run_ranks(int size, const std::function<void(Endpoint&)>& body) {
  make_thread_world({.size = size})->run(body);
}

}  // namespace ranklab::comm_test
