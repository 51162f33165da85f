// Traffic as text: the bytes of each axis and purpose, inside nodes and between them, and the matrix itself. Cost:
// O(events) per purpose. Thread rule: pure.
#pragma once
#include <string>
#include <vector>

#include "viz/model/tables/traffic_matrix.h"

namespace ranklab::viz {

struct PurposeTraffic {
  Purpose purpose = Purpose::kOther;
  TrafficCell all;
  TrafficCell intra_node, inter_node;  // empty if the nodes are unknown
};
// One row for each purpose that occurs in the window, in the order of Purpose. The filter's own purpose is ignored.
std::vector<PurposeTraffic> traffic_by_purpose(const TraceStore& store, const Window& window, TrafficFilter filter);

// A kind of traffic: its axis, and its purpose if the calls name one.
struct TrafficFlow {
  Axis axis = Axis::kWorld;
  PurposeTraffic traffic;
  std::string name() const;  // "dp", "ep: dispatch"
};
// The kinds that send something, sorted by axis, then purpose. The filter's own axis and purpose are ignored.
std::vector<TrafficFlow> traffic_flows(const TraceStore& store, const Window& window, TrafficFilter filter);
// The flows as a table; "" if nothing is sent.
std::string flows_text(const std::vector<TrafficFlow>& flows, int gpus_per_node);

// The bytes of each pair with sums, for up to 16 ranks; for more ranks only the sums. In brackets, the bytes of
// all_to_alls that stayed on the rank, which are not part of any sum.
std::string matrix_text(const TrafficMatrix& matrix, TrafficLayer layer);

}  // namespace ranklab::viz
