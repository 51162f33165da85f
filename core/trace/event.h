// Recorded events as plain structs: the trace file, the console, lessons and the visualizer all read these. Times are
// nanoseconds. `virtual_*` is the simulated clock (0 on real hardware), `wall_*` is steady-clock time since the trace
// epoch. A value of kNoTime means "does not apply".
#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/type_change.h"
#include "core/base/vocabulary.h"

namespace ranklab {

constexpr int64_t kNoTime = std::numeric_limits<int64_t>::min();

enum class EventKind : uint8_t {
  kCompute,     // a span on the compute lane: an op group such as "forward mb 0", or an action F / B / W
  kCollective,  // a verb on the lane of its axis (send and recv included)
  kPhase,       // a span that encloses others: "step 12", "optimizer"
  kInstant,     // a moment: "validation", "checkpoint"
  kCounter,     // a value at a moment: memory by category, loss
  kModule,      // a span inside an action: the use of a module, "layers.3.attention backward"
  kKernel,      // a span inside a module: one kernel, "gemm 512x768x256"
  kAttention,   // a span inside a module: attention to a part of the keys (attention_event.h)
  kCount
};

struct Event {
  EventKind kind = EventKind::kInstant;
  Axis axis = Axis::kWorld;           // lane of a collective
  Verb verb = Verb::kBarrier;         // of a collective
  DType dtype = DType::kOther;        // of a collective
  Purpose purpose = Purpose::kOther;  // of a collective
  uint32_t name = 0;                  // index into RankTrace::names
  int32_t step = -1;
  int32_t microbatch = -1;
  int32_t stage = -1;  // pipeline stage of an action
  int32_t peer = -1;   // group rank of the root or the peer, else -1
  // tag of a message; for a routing event (routing_event.h) the layer; for a kernel what bounds it: 0 launch, 1
  // memory, 2 compute
  int32_t tag = 0;
  int64_t sequence = -1;  // for a collective: the number of the call in its group; both ends of a message share it
  int64_t virtual_begin_ns = 0;  // for a collective: when it started on the link (its latest member had posted)
  int64_t virtual_end_ns = 0;
  int64_t wall_begin_ns = 0;
  int64_t wall_end_ns = 0;
  // Collectives: the times when the call was posted, was matched, and received its first byte. Matched is the time when
  // the latest member posted.
  int64_t virtual_posted_ns = kNoTime;
  int64_t virtual_matched_ns = kNoTime;
  int64_t virtual_first_byte_ns = kNoTime;
  int64_t wall_matched_ns = kNoTime;
  // Time that the compute stream lost in this call's wait(): for a transfer not hidden by compute, and for a late
  // member.
  int64_t virtual_exposed_ns = 0;
  int64_t virtual_peer_wait_ns = 0;
  // the verb's nominal size: elements x element size of the full tensor; for a kernel the bytes that it reads and
  // writes
  int64_t logical_bytes = 0;
  int64_t algorithm_bytes = 0;  // what this rank sends under the modelled algorithm (ring: 2(n-1)/n x logical)
  int64_t wire_bytes = 0;       // what the backend actually sent from this rank
  // value of a counter ("loss", "memory/parameters"); for a module or kernel its FLOPs; for attention its (query, key)
  // pairs
  double value = 0;
  // Numbers that belong to the event: RankTrace::arrays[array - 1]; 0: none. For an all_to_all, the bytes that this
  // rank sent to each member of the group; for routing events see routing_event.h, for attention attention_event.h.
  uint32_t array = 0;
  TypeChange types = {};  // for a collective in a step whose tensor types are followed

  bool operator==(const Event&) const = default;
};

// The global ranks of this rank's group on an axis, in group order; used to match the events of one collective.
struct TraceGroup {
  Axis axis = Axis::kWorld;
  std::vector<int> global_ranks;

  bool operator==(const TraceGroup&) const = default;
};

// Everything one rank recorded.
struct RankTrace {
  int global_rank = 0;
  std::string label;  // "dp0 tp1 pp0"
  std::vector<std::string> names;
  std::vector<TraceGroup> groups;
  std::vector<std::vector<double>> arrays;  // for events that have an array
  std::vector<Event> events;
  int64_t dropped = 0;  // events lost because the buffer was full (0 unless the limit was reached)

  bool operator==(const RankTrace&) const = default;
};

}  // namespace ranklab
