#include "viz/model/tables/mesh_table.h"

#include <algorithm>
#include <array>
#include <set>

#include "core/base/text.h"
#include "viz/model/store/time_text.h"
#include "viz/model/tables/bubbles.h"
#include "viz/model/tables/memory_table.h"
#include "viz/model/tables/traffic_matrix.h"

namespace ranklab::viz {

int MeshTable::coordinate(size_t rank_index, Axis axis) const {
  for (const auto& [known, position] : ranks[rank_index].coordinates) {
    if (known == axis) return position;
  }
  return -1;
}

MeshTable mesh_table(const TraceStore& store) {
  MeshTable table;
  std::set<Axis> axes;
  std::set<std::pair<Axis, std::vector<int>>> groups;
  for (const RankTrace& trace : store.traces()) {
    MeshRank rank;
    rank.global_rank = trace.global_rank;
    for (const TraceGroup& group : trace.groups) {
      const auto self = std::find(group.global_ranks.begin(), group.global_ranks.end(), trace.global_rank);
      if (self == group.global_ranks.end()) continue;
      rank.coordinates.emplace_back(group.axis, static_cast<int>(self - group.global_ranks.begin()));
      groups.emplace(group.axis, group.global_ranks);
      if (group.global_ranks.size() > 1) axes.insert(group.axis);
    }
    std::sort(rank.coordinates.begin(), rank.coordinates.end());
    table.ranks.push_back(std::move(rank));
  }
  table.axes.assign(axes.begin(), axes.end());
  for (const auto& [axis, members] : groups) table.groups.push_back({axis, members});
  return table;
}

std::vector<size_t> telling_ranks(const MeshTable& table, size_t most) {
  std::vector<size_t> ranks(table.ranks.size());
  for (size_t i = 0; i < ranks.size(); ++i) ranks[i] = i;
  for (const Axis axis : {Axis::kDp, Axis::kCp, Axis::kTp}) {
    if (ranks.size() <= most) return ranks;
    std::erase_if(ranks, [&](size_t rank) { return table.coordinate(rank, axis) > 0; });
  }
  if (ranks.size() <= most) return ranks;
  std::vector<size_t> spaced;
  for (size_t i = 0; i < most; ++i) spaced.push_back(ranks[i * ranks.size() / most]);
  return spaced;
}

std::string_view name(RankMetric metric) {
  constexpr std::array<std::string_view, static_cast<size_t>(RankMetric::kCount)> kNames = {
      "busy", "bubble", "exposed comm", "peer wait", "bytes sent", "peak memory", "events"};
  return kNames[static_cast<size_t>(metric)];
}

namespace {

RankValue time_value(const TimeSplit& time, RankMetric metric) {
  if (time.total_ns <= 0) return {0, "not recorded"};
  const auto wait = time.by_cause_ns[static_cast<size_t>(BubbleCause::kStraggler)] +
                    time.by_cause_ns[static_cast<size_t>(BubbleCause::kDependency)];
  const double share = metric == RankMetric::kBusy      ? time.busy_share()
                       : metric == RankMetric::kBubble  ? time.bubble_of_total()
                       : metric == RankMetric::kExposed ? time.exposed_share()
                                                        : share_of(wait, time.total_ns);
  return {share, format_percent(share)};
}

RankValue bytes_value(double bytes) { return {bytes, human_bytes(bytes)}; }

}  // namespace

std::vector<RankValue> rank_metric(const TraceStore& store, const Window& window, RankMetric metric) {
  std::vector<RankValue> out;
  switch (metric) {
    case RankMetric::kBytesSent: {
      const TrafficMatrix matrix = traffic_matrix(store, window);
      for (const RankRows& rank : store.ranks()) {
        const auto at = std::lower_bound(matrix.ranks.begin(), matrix.ranks.end(), rank.global_rank);
        const bool known = at != matrix.ranks.end() && *at == rank.global_rank;
        const auto from = static_cast<size_t>(at - matrix.ranks.begin());
        out.push_back(bytes_value(known ? static_cast<double>(matrix.row_sum(from).of(TrafficLayer::kAlgorithm)) : 0));
      }
      break;
    }
    case RankMetric::kPeakMemory:
      for (const RankMemory& memory : memory_table(store, window)) out.push_back(bytes_value(memory.peak.total()));
      break;
    case RankMetric::kEvents:
      for (const RankTrace& trace : store.traces()) {
        const auto count = std::count_if(trace.events.begin(), trace.events.end(),
                                         [&](const Event& event) { return window.has(event, store.clock()); });
        out.push_back({static_cast<double>(count), std::to_string(count)});
      }
      break;
    default:
      for (const RankBubbles& rank : find_bubbles(store, window).ranks) out.push_back(time_value(rank.time, metric));
  }
  return out;
}

}  // namespace ranklab::viz
