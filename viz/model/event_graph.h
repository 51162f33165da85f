// What had to happen before what: each rank's compute stream as a chain of points (it posted a call, it went on after a
// wait) with work between them, and the calls that tie the chains together. Timed backwards it gives slack, timed anew
// with other durations it answers what-ifs; with the recorded durations it gives the recorded times.
//   A call begins when its last member has posted and the call before it on its lane is done; a rank goes on after a
// wait when its own work is done and the call is. A wait that did not last happened at an unknown moment after the
// call's end; the latest thing the rank is known to have done before it is taken. Sends that did not last are not
// waited for.
//   Cost: O(n log n) to build, O(n) a pass; about 100 bytes a call. Thread rule: plain data.
#pragma once
#include <cstdint>
#include <vector>

#include "viz/model/trace_store.h"

namespace ranklab::viz {

constexpr uint32_t kNoNode = static_cast<uint32_t>(-1);

// A moment of a rank's compute stream.
struct GraphPoint {
  int64_t time_ns = 0;
  int64_t lost_ns = 0;  // it stood still for so long before
  int64_t work_ns = 0;  // since the point before, or the rank's start
  uint32_t call = kNoNode;
  bool wait = false;  // else it posted the call
};

struct GraphCall {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  int64_t extra_ns = 0;       // it began so much after all it is known to need
  uint32_t before = kNoNode;  // calls on its lane
  uint32_t after = kNoNode;
  std::vector<std::pair<uint32_t, uint32_t>> posts;  // rank index, point
  std::vector<std::pair<uint32_t, uint32_t>> waits;
  EventRef event;  // one of its sides
};

struct GraphRank {
  int64_t start_ns = 0;            // first moment of its own
  int64_t end_ns = 0;              // last one; after its last point it works until then
  std::vector<GraphPoint> points;  // by time
};

struct EventGraph {
  TimeRange range;
  std::vector<GraphRank> ranks;
  std::vector<GraphCall> calls;
  // Every node after what it needs: points as (rank, point), calls as (kNoNode, call). Nodes in a circle (no trace of
  // ours) are left out.
  std::vector<std::pair<uint32_t, uint32_t>> order;
};

EventGraph make_event_graph(const TraceStore& store, const Window& window);

// How much later each node could be without a longer whole.
struct GraphSlack {
  std::vector<std::vector<int64_t>> points;  // [rank][point]
  std::vector<int64_t> calls;
  std::vector<int64_t> ends;  // of each rank
};
GraphSlack find_slack(const EventGraph& graph);
// Of a moment of a rank's own work.
int64_t slack_at(const EventGraph& graph, const GraphSlack& slack, size_t rank_index, int64_t time_ns);

// Times when calls and work take other durations.
struct Durations {
  std::vector<std::vector<int64_t>> work_ns;  // [rank][point], as GraphPoint::work_ns, and one more for the rank's end
  std::vector<int64_t> call_ns;
};
Durations recorded_durations(const EventGraph& graph);
struct GraphTimes {
  std::vector<std::vector<int64_t>> points;
  std::vector<int64_t> call_begin, call_end;
  std::vector<int64_t> rank_end;
  int64_t end_ns = 0;  // of everything
};
GraphTimes time_graph(const EventGraph& graph, const Durations& durations);

}  // namespace ranklab::viz
