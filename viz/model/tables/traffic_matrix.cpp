#include "viz/model/tables/traffic_matrix.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <set>

namespace ranklab::viz {
namespace {

// More than anyone can look at, but few enough to store n x n cells.
constexpr size_t kMostRanks = 1024;

// The size of part `index` if `bytes` are split into `parts` parts.
int64_t part_of(int64_t bytes, int64_t parts, int64_t index) { return bytes / parts + (index < bytes % parts ? 1 : 0); }

int64_t bytes_of_part(double part) {
  return part > 0 ? static_cast<int64_t>(std::min(part, static_cast<double>(kBytesLimit))) : 0;  // 0 for NaN
}

// The parts of an all_to_all, one for each member; empty if the event has none that match the group.
std::span<const double> parts_of(const RankTrace& trace, const Event& event, const std::vector<int>& group) {
  if (event.verb != Verb::kAllToAll || event.array == 0) return {};
  const std::vector<double>& parts = trace.arrays[event.array - 1];
  return parts.size() == group.size() ? std::span<const double>(parts) : std::span<const double>();
}

int64_t kept_bytes(const RankTrace& trace, const Event& event) {
  const std::vector<int>* group = group_of(trace, event.axis);
  if (group == nullptr) return 0;
  const std::span<const double> parts = parts_of(trace, event, *group);
  const auto self = std::find(group->begin(), group->end(), trace.global_rank);
  if (parts.empty() || self == group->end()) return 0;
  return bytes_of_part(parts[static_cast<size_t>(self - group->begin())]);
}

// Visits the sends of an all_to_all from member `mine` to the others, as given by its parts; the bytes that the backend
// moved are split in proportion.
void visit_parts(const std::vector<int>& group, int64_t mine, std::span<const double> parts, TrafficCell cell,
                 const SendVisit& visit) {
  const auto bytes_of = [&](size_t i) { return i == static_cast<size_t>(mine) ? 0 : bytes_of_part(parts[i]); };
  int64_t left = 0;
  for (size_t i = 0; i < parts.size(); ++i) left += bytes_of(i);
  const auto wire = static_cast<size_t>(TrafficLayer::kWire);
  int64_t wire_left = cell.bytes[wire];
  for (size_t step = 1; step < parts.size(); ++step) {
    const size_t i = (static_cast<size_t>(mine) + step) % parts.size();
    const int64_t bytes = bytes_of(i);
    if (bytes == 0) continue;
    const double share = static_cast<double>(bytes) / static_cast<double>(left);
    const int64_t moved = bytes == left ? wire_left : std::llround(static_cast<double>(wire_left) * share);
    left -= bytes;
    wire_left -= moved;
    cell.bytes = {bytes, bytes, moved};
    visit(group[i], cell);
  }
}

std::vector<int> all_ranks(const TraceStore& store) {
  std::set<int> ranks;
  for (const RankTrace& trace : store.traces()) ranks.insert(trace.global_rank);
  for (const RankTrace& trace : store.traces()) {
    for (const TraceGroup& group : trace.groups) {
      for (const int member : group.global_ranks) {
        if (ranks.size() < kMostRanks) ranks.insert(member);
      }
    }
  }
  std::vector<int> out(ranks.begin(), ranks.end());
  out.resize(std::min(out.size(), kMostRanks));
  return out;
}

}  // namespace

void visit_sends(const RankTrace& trace, const Event& event, TraceClock clock, const SendVisit& visit) {
  if (event.kind != EventKind::kCollective || event.verb == Verb::kRecv || event.verb == Verb::kBarrier) return;
  const std::vector<int>* group = group_of(trace, event.axis);
  if (group == nullptr) return;
  const auto n = static_cast<int64_t>(group->size());
  TrafficCell cell;
  cell.bytes = {event.logical_bytes, event.algorithm_bytes, event.wire_bytes};
  cell.messages = 1;
  cell.time_ns = std::max<int64_t>(0, end_ns(event, clock) - begin_ns(event, clock));
  if (event.verb == Verb::kSend) {
    if (event.peer >= 0 && event.peer < n) visit((*group)[static_cast<size_t>(event.peer)], cell);
    return;
  }
  const auto self = std::find(group->begin(), group->end(), trace.global_rank);
  if (self == group->end() || n < 2) return;
  const int64_t mine = self - group->begin();
  if (const std::span<const double> parts = parts_of(trace, event, *group); !parts.empty())
    return visit_parts(*group, mine, parts, cell, visit);
  int64_t& logical = cell.bytes[static_cast<size_t>(TrafficLayer::kLogical)];
  if (event.verb != Verb::kBroadcast) logical = logical * (n - 1) / n * (event.verb == Verb::kAllReduce ? 2 : 1);
  if (event.verb == Verb::kAllToAll) {
    const auto whole = cell.bytes;
    for (int64_t i = 1; i < n; ++i) {
      for (size_t layer = 0; layer < kTrafficLayers; ++layer) cell.bytes[layer] = part_of(whole[layer], n - 1, i - 1);
      visit((*group)[static_cast<size_t>((mine + i) % n)], cell);
    }
    return;
  }
  const bool ends_here = event.verb == Verb::kBroadcast && (mine + 1) % n == std::max(event.peer, 0);
  if (!ends_here) visit((*group)[static_cast<size_t>((mine + 1) % n)], cell);
}

std::string_view name(TrafficLayer layer) {
  switch (layer) {
    case TrafficLayer::kLogical:
      return "logical";
    case TrafficLayer::kAlgorithm:
      return "algorithm";
    case TrafficLayer::kWire:
      break;
  }
  return "wire";
}

std::string_view name(NodeScope scope) {
  constexpr std::array<std::string_view, 3> kNames = {"all links", "intra-node", "inter-node"};
  return kNames[static_cast<size_t>(scope)];
}

bool TrafficFilter::has(int from_rank, int to_rank) const {
  if (nodes == NodeScope::kAll || gpus_per_node <= 0) return true;
  const bool same = from_rank / gpus_per_node == to_rank / gpus_per_node;
  return same == (nodes == NodeScope::kIntraNode);
}

void TrafficCell::add(const TrafficCell& cell) {
  for (size_t layer = 0; layer < kTrafficLayers; ++layer) bytes[layer] += cell.bytes[layer];
  messages += cell.messages;
  time_ns += cell.time_ns;
}

double TrafficCell::gb_per_s(TrafficLayer layer) const {
  return time_ns > 0 ? static_cast<double>(of(layer)) / static_cast<double>(time_ns) : 0;
}

TrafficCell TrafficMatrix::row_sum(size_t from) const {
  TrafficCell sum;
  for (size_t to = 0; to < size(); ++to) sum.add(at(from, to));
  return sum;
}

TrafficCell TrafficMatrix::column_sum(size_t to) const {
  TrafficCell sum;
  for (size_t from = 0; from < size(); ++from) sum.add(at(from, to));
  return sum;
}

TrafficCell TrafficMatrix::total() const {
  TrafficCell sum;
  for (const TrafficCell& cell : cells) sum.add(cell);
  return sum;
}

int64_t TrafficMatrix::largest(TrafficLayer layer) const {
  int64_t most = 0;
  for (const TrafficCell& cell : cells) most = std::max(most, cell.of(layer));
  return most;
}

TrafficMatrix traffic_matrix(const TraceStore& store, const Window& window, const TrafficFilter& filter) {
  TrafficMatrix matrix;
  matrix.ranks = all_ranks(store);
  matrix.cells.resize(matrix.size() * matrix.size());
  matrix.kept_bytes.resize(matrix.size());
  std::set<Axis> axes;
  std::set<Purpose> purposes;
  const auto position = [&](int rank) {
    return static_cast<size_t>(std::lower_bound(matrix.ranks.begin(), matrix.ranks.end(), rank) - matrix.ranks.begin());
  };
  for (const RankTrace& trace : store.traces()) {
    const size_t from = position(trace.global_rank);
    if (from >= matrix.size()) continue;
    for (const Event& event : trace.events) {
      if (event.kind != EventKind::kCollective || !window.has(event, store.clock())) continue;
      axes.insert(event.axis);
      purposes.insert(event.purpose);
      if (!filter.has(event)) continue;
      if (filter.has(trace.global_rank, trace.global_rank)) matrix.kept_bytes[from] += kept_bytes(trace, event);
      visit_sends(trace, event, store.clock(), [&](int to_rank, const TrafficCell& cell) {
        const size_t to = position(to_rank);
        const bool counts = filter.has(trace.global_rank, to_rank);
        if (counts && to < matrix.size() && matrix.ranks[to] == to_rank)
          matrix.cells[from * matrix.size() + to].add(cell);
      });
    }
  }
  matrix.axes.assign(axes.begin(), axes.end());
  matrix.purposes.assign(purposes.begin(), purposes.end());
  return matrix;
}

std::vector<StepTraffic> traffic_by_step(const TraceStore& store, size_t first, size_t most,
                                         const TrafficFilter& filter) {
  std::vector<StepTraffic> out;
  first = std::min(first, store.steps().size());
  for (const StepRange& step : store.steps().subspan(first, std::min(most, store.steps().size() - first)))
    out.push_back({step.step, traffic_matrix(store, {step.range, step.step}, filter)});
  return out;
}

size_t first_of_part(const TraceStore& store, int step, size_t most) {
  const std::span<const StepRange> steps = store.steps();
  const auto after = std::upper_bound(steps.begin(), steps.end(), step,
                                      [](int number, const StepRange& range) { return number < range.step; });
  const auto up_to = static_cast<size_t>(after - steps.begin());
  const size_t part = (up_to - std::min<size_t>(up_to, 1)) / most * most;
  return std::min(part, steps.size() - std::min(steps.size(), most));
}

std::vector<EventRef> calls_between(const TraceStore& store, const Window& window, int from_rank, int to_rank,
                                    const TrafficFilter& filter) {
  std::vector<EventRef> calls;
  const auto rank = store.index_of_rank(from_rank);
  if (!rank || !filter.has(from_rank, to_rank)) return calls;
  const RankTrace& trace = store.trace(*rank);
  for (size_t e = 0; e < trace.events.size(); ++e) {
    const Event& event = trace.events[e];
    if (!filter.has(event) || !window.has(event, store.clock())) continue;
    visit_sends(trace, event, store.clock(), [&](int to, const TrafficCell&) {
      if (to == to_rank) calls.push_back({*rank, e});
    });
  }
  return calls;
}

}  // namespace ranklab::viz
