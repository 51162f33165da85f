// Traffic as text: the bytes of each purpose, inside nodes and between them, and the matrix itself. Cost: O(events) per
// purpose. Thread rule: pure.
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
// A row for each purpose of the window, in the order of Purpose. The filter's own purpose is ignored.
std::vector<PurposeTraffic> traffic_by_purpose(const TraceStore& store, const Window& window, TrafficFilter filter);
// As a table; "" when no call has a specific purpose and the nodes are unknown.
std::string purpose_text(const std::vector<PurposeTraffic>& rows, int gpus_per_node);

// Bytes of each pair with their sums, for up to 16 ranks; for more ranks only the sums. In brackets the part of its
// all_to_alls that stayed on the rank, which is in no sum.
std::string matrix_text(const TrafficMatrix& matrix, TrafficLayer layer);

}  // namespace ranklab::viz
