// The dependency graph of a trace: each rank's compute stream is a chain of points (it posted a call, or it continued
// after a wait) with work between them, and calls connect the chains. Traversed backwards, the graph gives slack; timed
// with other durations it answers what-ifs; with the recorded durations it reproduces the recorded times. A call begins
// when its last member has posted and the previous call on its lane is done; a rank continues after a wait when its own
// work and the call are done. A wait without duration happened at an unknown time after the call's end; the rank's
// latest known activity before it is used. Sends without duration are not waited for. Cost: O(n log n) to build, O(n)
// per pass; about 100 bytes per call. Thread rule: plain data.
#pragma once
#include <cstdint>
#include <vector>

#include "viz/model/store/trace_store.h"

namespace ranklab::viz {

constexpr uint32_t kNoNode = static_cast<uint32_t>(-1);

// A moment in a rank's compute stream.
struct GraphPoint {
  int64_t time_ns = 0;
  int64_t lost_ns = 0;  // duration of the stall before it
  int64_t work_ns = 0;  // since the previous point, or the rank's start
  uint32_t call = kNoNode;
  bool wait = false;  // it continued after a wait; else it posted the call
};

struct GraphCall {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  int64_t extra_ns = 0;       // how much later it began than its known dependencies require
  uint32_t before = kNoNode;  // previous calls on its lane
  uint32_t after = kNoNode;
  std::vector<std::pair<uint32_t, uint32_t>> posts;  // rank index, point
  std::vector<std::pair<uint32_t, uint32_t>> waits;
  EventRef event;  // the event of one of its members
};

struct GraphRank {
  int64_t start_ns = 0;            // begin of its own activity
  int64_t end_ns = 0;              // end of its activity; it works from its last point until then
  std::vector<GraphPoint> points;  // by time
};

struct EventGraph {
  TimeRange range;
  std::vector<GraphRank> ranks;
  std::vector<GraphCall> calls;
  // All nodes, each after its dependencies: points as (rank, point), calls as (kNoNode, call). Nodes in a cycle are
  // left out (our own traces have none).
  std::vector<std::pair<uint32_t, uint32_t>> order;
};

EventGraph make_event_graph(const TraceStore& store, const Window& window);

// How much later each node could happen without delaying the end.
struct GraphSlack {
  std::vector<std::vector<int64_t>> points;  // [rank][point]
  std::vector<int64_t> calls;
  std::vector<int64_t> ends;  // [rank]
};
GraphSlack find_slack(const EventGraph& graph);
// The slack at a time during a rank's own work.
int64_t slack_at(const EventGraph& graph, const GraphSlack& slack, size_t rank_index, int64_t time_ns);

// Replacement durations of calls and work.
struct Durations {
  std::vector<std::vector<int64_t>> work_ns;  // [rank][point], as GraphPoint::work_ns, plus one for the rank's end
  std::vector<int64_t> call_ns;
};
Durations recorded_durations(const EventGraph& graph);
struct GraphTimes {
  std::vector<std::vector<int64_t>> points;
  std::vector<int64_t> call_begin, call_end;
  std::vector<int64_t> rank_end;
  int64_t end_ns = 0;  // the end of everything
};
GraphTimes time_graph(const EventGraph& graph, const Durations& durations);

}  // namespace ranklab::viz
