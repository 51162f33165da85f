// Running a thread world that is expected to fail, on each of its paths.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <numeric>
#include <optional>
#include <ostream>
#include <string>

#include "backends/cpu_sim/thread_world.h"
#include "core/base/error.h"
#include "core/sim/aten.h"
#include "tests/cpu_sim/host_queues.h"
#include "tests/fair_clock.h"

namespace ranklab::cpu_sim_test {

struct Path {
  const char* name;
  Collectives collectives;
  Transport transport;
  bool device = false;  // the transfers of a device, which is the host
};
inline constexpr Path kPaths[] = {{"direct", Collectives::kDirect, Transport::kInproc},
                                  {"gloo_inproc", Collectives::kGloo, Transport::kInproc},
                                  {"gloo_tcp", Collectives::kGloo, Transport::kTcp},
                                  {"device", Collectives::kDirect, Transport::kInproc, true}};
inline void PrintTo(const Path& path, std::ostream* out) { *out << path.name; }
inline std::string path_name(const testing::TestParamInfo<Path>& info) { return info.param.name; }

inline ThreadWorldOptions options_of(const Path& path, int size) {
  return {.size = size,
          .collectives = path.collectives,
          .transport = path.transport,
          .device = path.device ? make_host_queues() : nullptr};
}

inline Group group_of(std::vector<int> ranks, int rank, Axis axis = Axis::kWorld) {
  Group group{.axis = axis, .global_ranks = std::move(ranks)};
  while (group.global_rank() != rank) ++group.group_rank;
  return group;
}
inline Group everyone(const Endpoint& endpoint, Axis axis = Axis::kWorld) {
  std::vector<int> ranks(static_cast<size_t>(endpoint.world_size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return group_of(std::move(ranks), endpoint.global_rank(), axis);
}

// A hang limit to wait for: long enough that a rank which only waits for a processor is not the hung one.
inline constexpr std::chrono::milliseconds kHang{500};

using Body = std::function<void(Endpoint&, Communicator&)>;

struct Outcome {
  std::optional<Error> error;  // what World::run threw
  double seconds = 0;          // as fair_clock.h counts them
  std::string text() const { return error ? error->what() : "no error"; }
};

// Hands `body` a communicator over all ranks.
inline Outcome run_world(const ThreadWorldOptions& options, const Body& body) {
  Outcome out;
  const FairClock clock;
  try {
    make_thread_world(options)->run([&](Endpoint& endpoint) {
      const CommunicatorPtr comm = endpoint.communicator(everyone(endpoint));
      body(endpoint, *comm);
    });
  } catch (const Error& error) {
    out.error = error;
  }
  out.seconds = clock.seconds();
  return out;
}

}  // namespace ranklab::cpu_sim_test
