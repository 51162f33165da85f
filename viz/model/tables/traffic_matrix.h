// Traffic between ranks. Layers: logical (what the call means), algorithm (what the modelled algorithm sends), wire
// (what the backend sent from the rank). The bytes that a rank sends in a call are assigned to pairs of ranks:
//   send                                    all to the peer
//   all_reduce, reduce_scatter, all_gather  a ring: all to the next member of the group
//   broadcast                               a pipelined ring from the root: all to the next member, the last one none
//   all_to_all                              as its array says (Event::array); without one in equal parts to the others
//   barrier, recv                           nothing
// The logical layer of a collective counts what the call delivers to each rank: the ring verbs count their logical
// bytes x (n-1)/n (all_reduce: x 2 (n-1)/n) over the same pairs; for an all_to_all with an array, the logical and the
// algorithm layer both count the array. So a row's sum is what a rank sends. Bytes that do not divide evenly keep their
// sum: the first pairs get one byte more. The node of a rank: global rank / gpus per node. Cost: O(n). Thread rule:
// pure.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "viz/model/store/trace_store.h"

namespace ranklab::viz {

enum class TrafficLayer : uint8_t { kLogical, kAlgorithm, kWire };
constexpr size_t kTrafficLayers = 3;
std::string_view name(TrafficLayer layer);  // "logical", "algorithm", "wire"

struct TrafficCell {
  std::array<int64_t, kTrafficLayers> bytes{};
  int64_t messages = 0;  // calls that sent something on this pair
  int64_t time_ns = 0;   // on the link, sum over those calls

  int64_t of(TrafficLayer layer) const { return bytes[static_cast<size_t>(layer)]; }
  void add(const TrafficCell& cell);
  double gb_per_s(TrafficLayer layer) const;  // effective bandwidth: bytes / time; 0 without time
};

using SendVisit = std::function<void(int to_rank, const TrafficCell& cell)>;
// Visits what an event's rank sends, pair by pair; nothing for an event that is not a call.
void visit_sends(const RankTrace& trace, const Event& event, TraceClock clock, const SendVisit& visit);

struct TrafficMatrix {
  std::vector<int> ranks;          // global ranks of rows and columns, ascending
  std::vector<TrafficCell> cells;  // [from][to]
  // By rank: bytes of all_to_alls (with an array) that stayed on the rank. Together with the row's sum, this is
  // everything that the rank had to send.
  std::vector<int64_t> kept_bytes;
  // Axes seen in the window, independent of the filter.
  std::vector<Axis> axes;
  std::vector<Purpose> purposes;

  size_t size() const { return ranks.size(); }
  const TrafficCell& at(size_t from, size_t to) const { return cells[from * size() + to]; }
  TrafficCell row_sum(size_t from) const;
  TrafficCell column_sum(size_t to) const;
  TrafficCell total() const;
  int64_t largest(TrafficLayer layer) const;
};

enum class NodeScope : uint8_t { kAll, kIntraNode, kInterNode };
std::string_view name(NodeScope scope);  // "intra-node"

// Which traffic is counted. Filtering by nodes only works if their size is known.
struct TrafficFilter {
  std::optional<Axis> axis = {};
  std::optional<Purpose> purpose = {};
  NodeScope nodes = NodeScope::kAll;
  int gpus_per_node = 0;

  bool operator==(const TrafficFilter&) const = default;
  bool has(const Event& event) const {
    return (!axis || event.axis == *axis) && (!purpose || event.purpose == *purpose);
  }
  bool has(int from_rank, int to_rank) const;
};

// The ranks are those of the trace and every member of a recorded group, at most 1024. A call that overlaps a time
// window counts in full.
TrafficMatrix traffic_matrix(const TraceStore& store, const Window& window, const TrafficFilter& filter = {});

struct StepTraffic {
  int step = 0;
  TrafficMatrix matrix;
};
// The matrices of at most `most` steps of TraceStore::steps(), starting at position `first`.
std::vector<StepTraffic> traffic_by_step(const TraceStore& store, size_t first, size_t most,
                                         const TrafficFilter& filter = {});
// If the steps are divided into parts of `most` steps (the last part overlaps the one before it), the position of the
// first step of the part that contains a step. So the part stays the same while a cursor moves within it.
size_t first_of_part(const TraceStore& store, int step, size_t most);

// The sends from one rank to another in a window, for the list under a cell.
std::vector<EventRef> calls_between(const TraceStore& store, const Window& window, int from_rank, int to_rank,
                                    const TrafficFilter& filter = {});

}  // namespace ranklab::viz
