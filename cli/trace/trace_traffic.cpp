#include "cli/trace/trace_traffic.h"

#include <nlohmann/json.hpp>

#include "viz/model/tables/traffic_text.h"

namespace ranklab {
namespace {

using nlohmann::ordered_json;
constexpr auto kLogical = viz::TrafficLayer::kLogical;
constexpr size_t kPairsUpTo = 64;  // ranks

ordered_json cell_json(const viz::TrafficCell& cell) {
  return {{"sends", cell.messages},
          {"logical_bytes", cell.of(kLogical)},
          {"algorithm_bytes", cell.of(viz::TrafficLayer::kAlgorithm)},
          {"wire_bytes", cell.of(viz::TrafficLayer::kWire)}};
}

}  // namespace

ordered_json traffic_json(const viz::TraceStore& store, const viz::Window& window) {
  const int gpus = store.gpus_per_node();
  ordered_json out = cell_json(viz::traffic_matrix(store, window).total());
  out["gpus_per_node"] = gpus > 0 ? ordered_json(gpus) : ordered_json();
  out["by_purpose"] = ordered_json::object();
  for (const viz::PurposeTraffic& row : viz::traffic_by_purpose(store, window, {.gpus_per_node = gpus})) {
    ordered_json purpose = cell_json(row.all);
    if (gpus > 0) {
      purpose["intra_node_bytes"] = row.intra_node.of(kLogical);
      purpose["inter_node_bytes"] = row.inter_node.of(kLogical);
    }
    out["by_purpose"][std::string(name(row.purpose))] = purpose;
  }
  out["by_axis"] = ordered_json::array();
  for (const viz::TrafficFlow& flow : viz::traffic_flows(store, window, {.gpus_per_node = gpus})) {
    ordered_json row = {{"axis", name(flow.axis)}, {"purpose", name(flow.traffic.purpose)}};
    row.update(cell_json(flow.traffic.all));
    out["by_axis"].push_back(row);
  }
  return out;
}

ordered_json matrix_json(const viz::TrafficMatrix& matrix) {
  const size_t n = matrix.size();
  if (n > kPairsUpTo) return nullptr;
  ordered_json pairs = ordered_json::array(), sent = ordered_json::array(), got = ordered_json::array();
  for (size_t from = 0; from < n; ++from) {
    ordered_json row = ordered_json::array();
    for (size_t to = 0; to < n; ++to) row.push_back(matrix.at(from, to).of(kLogical));
    pairs.push_back(row);
    sent.push_back(matrix.row_sum(from).of(kLogical));
    got.push_back(matrix.column_sum(from).of(kLogical));
  }
  return {{"ranks", matrix.ranks},
          {"bytes", pairs},
          {"sent_bytes", sent},
          {"got_bytes", got},
          {"kept_bytes", matrix.kept_bytes}};
}

}  // namespace ranklab
