// Calls and bytes of recorded events, summed by axis and verb. Thread rule: plain data.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <utility>

#include "core/comm/device_mesh.h"
#include "core/trace/event.h"

namespace ranklab {

struct VerbTraffic {
  int64_t calls = 0;
  int64_t logical_bytes = 0;  // payload of the verb, in bytes of the full tensor
  int64_t ring_bytes = 0;     // bytes sent by this rank under the algorithms of core/sim/link_cost.h

  void add(const VerbTraffic& more) {
    calls += more.calls;
    logical_bytes += more.logical_bytes;
    ring_bytes += more.ring_bytes;
  }
  bool operator==(const VerbTraffic&) const = default;
};
using RankTraffic = std::map<std::pair<Axis, Verb>, VerbTraffic>;

struct TrafficCount {
  RankTraffic calls = {};                // received messages have no entry
  std::map<Axis, int64_t> busy_ns = {};  // time on the links
  std::map<int, int64_t> sent_to = {};   // bytes of messages to each other rank of the pipeline
  // In exchanges between gateways (core/parallel/expert/node_hops.h): bytes that stay on the rank, because it is the
  // gateway of its own node.
  int64_t to_own_node = 0;

  // Adds events of a rank, whose trace names its groups. Axes of size one are ignored.
  void add(std::span<const Event> events, const RankTrace& trace, const DeviceMesh& mesh, int gpus_per_node);
  void add(const TrafficCount& other);
};

}  // namespace ranklab
