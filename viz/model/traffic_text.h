// Traffic as text: what each purpose sends, inside nodes and between them, and the matrix itself. Cost: O(events) a
// purpose. Thread rule: pure.
#pragma once
#include <string>
#include <vector>

#include "viz/model/traffic_matrix.h"

namespace ranklab::viz {

struct PurposeTraffic {
  Purpose purpose = Purpose::kOther;
  TrafficCell all;
  TrafficCell intra_node, inter_node;  // empty where the nodes are not known
};
// A row for each purpose of the window, in the order of Purpose. Of the filter's purpose it does not ask.
std::vector<PurposeTraffic> traffic_by_purpose(const TraceStore& store, const Window& window, TrafficFilter filter);
// As a table; "" when nothing has a purpose of its own and the nodes are not known.
std::string purpose_text(const std::vector<PurposeTraffic>& rows, int gpus_per_node);

// Bytes of each pair with their sums, for up to 16 ranks; of more ranks the sums alone. In brackets what a rank has
// kept of its all_to_alls, which is in no sum.
std::string matrix_text(const TrafficMatrix& matrix, TrafficLayer layer);

}  // namespace ranklab::viz
