#include "viz/model/tables/traffic_text.h"

#include "core/base/text.h"

namespace ranklab::viz {
namespace {

constexpr size_t kPairsUpTo = 16;

std::string bytes(const TrafficCell& cell, TrafficLayer layer) {
  return cell.of(layer) == 0 ? "-" : human_bytes(static_cast<double>(cell.of(layer)));
}

}  // namespace

std::vector<PurposeTraffic> traffic_by_purpose(const TraceStore& store, const Window& window, TrafficFilter filter) {
  std::vector<PurposeTraffic> out;
  filter.purpose.reset();
  TrafficFilter inside = filter;
  inside.nodes = NodeScope::kIntraNode;
  for (const Purpose purpose : traffic_matrix(store, window, filter).purposes) {
    filter.purpose = purpose;
    const TrafficMatrix matrix = traffic_matrix(store, window, filter);
    PurposeTraffic& row = out.emplace_back(PurposeTraffic{purpose, matrix.total(), {}, {}});
    if (filter.gpus_per_node <= 0) continue;
    for (size_t from = 0; from < matrix.size(); ++from) {
      for (size_t to = 0; to < matrix.size(); ++to)
        (inside.has(matrix.ranks[from], matrix.ranks[to]) ? row.intra_node : row.inter_node).add(matrix.at(from, to));
    }
  }
  return out;
}

std::string TrafficFlow::name() const {
  const std::string of_axis(ranklab::name(axis));
  return traffic.purpose == Purpose::kOther ? of_axis : of_axis + ": " + std::string(ranklab::name(traffic.purpose));
}

std::vector<TrafficFlow> traffic_flows(const TraceStore& store, const Window& window, TrafficFilter filter) {
  std::vector<TrafficFlow> out;
  filter.axis.reset();
  filter.purpose.reset();
  for (const Axis axis : traffic_matrix(store, window, filter).axes) {
    filter.axis = axis;
    for (PurposeTraffic& row : traffic_by_purpose(store, window, filter))
      if (row.all.messages > 0) out.push_back({axis, row});
  }
  return out;
}

std::string flows_text(const std::vector<TrafficFlow>& flows, int gpus_per_node) {
  if (flows.empty()) return {};
  constexpr auto kLogical = TrafficLayer::kLogical;
  const bool nodes = gpus_per_node > 0;
  std::string out = strprintf("%-20s %8s %12s %12s %12s", "logical bytes", "sends", "all", "algorithm", "wire");
  out += nodes ? strprintf(" %12s %12s   (%d GPUs a node)\n", "intra-node", "inter-node", gpus_per_node) : "\n";
  for (const TrafficFlow& flow : flows) {
    const PurposeTraffic& row = flow.traffic;
    out += strprintf("  %-18s %8lld %12s %12s %12s", flow.name().c_str(), static_cast<long long>(row.all.messages),
                     bytes(row.all, kLogical).c_str(), bytes(row.all, TrafficLayer::kAlgorithm).c_str(),
                     bytes(row.all, TrafficLayer::kWire).c_str());
    if (nodes)
      out += strprintf(" %12s %12s", bytes(row.intra_node, kLogical).c_str(), bytes(row.inter_node, kLogical).c_str());
    out += "\n";
  }
  return out;
}

std::string matrix_text(const TrafficMatrix& matrix, TrafficLayer layer) {
  const size_t n = matrix.size();
  const bool pairs = n <= kPairsUpTo;
  std::string out = strprintf("%-10s", ("from \\ to"));
  const auto pair = [&](size_t from, size_t to) {
    if (from != to || layer != TrafficLayer::kLogical || matrix.kept_bytes[from] == 0)
      return bytes(matrix.at(from, to), layer);
    return "(" + human_bytes(static_cast<double>(matrix.kept_bytes[from])) + ")";
  };
  for (size_t to = 0; pairs && to < n; ++to)
    out += strprintf(" %11s", ("r" + std::to_string(matrix.ranks[to])).c_str());
  out += strprintf(" %12s%s\n", "sent", pairs ? "" : "          got");
  for (size_t from = 0; from < n; ++from) {
    out += strprintf("%-10s", ("r" + std::to_string(matrix.ranks[from])).c_str());
    for (size_t to = 0; pairs && to < n; ++to) out += strprintf(" %11s", pair(from, to).c_str());
    out += strprintf(" %12s", bytes(matrix.row_sum(from), layer).c_str());
    if (!pairs) out += strprintf(" %12s", bytes(matrix.column_sum(from), layer).c_str());
    out += "\n";
  }
  if (!pairs) return out;
  out += strprintf("%-10s", "got");
  for (size_t to = 0; to < n; ++to) out += strprintf(" %11s", bytes(matrix.column_sum(to), layer).c_str());
  return out + strprintf(" %12s\n", bytes(matrix.total(), layer).c_str());
}

}  // namespace ranklab::viz
