// The passes of event_graph.h: backwards for slack, forwards for times.
#include <algorithm>

#include "viz/model/event_graph.h"

namespace ranklab::viz {

GraphSlack find_slack(const EventGraph& graph) {
  GraphSlack slack;
  for (const GraphRank& rank : graph.ranks) {
    slack.points.emplace_back(rank.points.size(), 0);
    slack.ends.push_back(graph.range.end_ns - rank.end_ns);
  }
  slack.calls.assign(graph.calls.size(), 0);
  for (auto node = graph.order.rbegin(); node != graph.order.rend(); ++node) {
    const auto [r, index] = *node;
    if (r == kNoNode) {
      const GraphCall& call = graph.calls[index];
      int64_t least = graph.range.end_ns - call.end_ns;
      for (const auto& [rank, p] : call.waits) {
        const GraphPoint& wait = graph.ranks[rank].points[p];
        least = std::min(least, slack.points[rank][p] + (wait.lost_ns > 0 ? 0 : wait.time_ns - call.end_ns));
      }
      if (call.after != kNoNode)
        least = std::min(least, slack.calls[call.after] + graph.calls[call.after].begin_ns - call.end_ns);
      slack.calls[index] = std::max<int64_t>(0, least);
      continue;
    }
    const std::vector<GraphPoint>& points = graph.ranks[r].points;
    const bool last = index + 1 == points.size();
    int64_t least = last ? slack.ends[r] : slack.points[r][index + 1] + points[index + 1].lost_ns;
    if (!points[index].wait) {
      const uint32_t call = points[index].call;
      least = std::min(least, slack.calls[call] + graph.calls[call].begin_ns - points[index].time_ns);
    }
    slack.points[r][index] = std::max<int64_t>(0, least);
  }
  return slack;
}

int64_t slack_at(const EventGraph& graph, const GraphSlack& slack, size_t rank_index, int64_t time_ns) {
  const std::vector<GraphPoint>& points = graph.ranks[rank_index].points;
  const auto next = std::lower_bound(points.begin(), points.end(), time_ns, [](const GraphPoint& point, int64_t time) {
    return point.time_ns - point.lost_ns < time;
  });
  if (next == points.end()) return std::max<int64_t>(0, slack.ends[rank_index]);
  return slack.points[rank_index][static_cast<size_t>(next - points.begin())] + next->lost_ns;
}

Durations recorded_durations(const EventGraph& graph) {
  Durations out;
  for (const GraphRank& rank : graph.ranks) {
    std::vector<int64_t>& work = out.work_ns.emplace_back();
    for (const GraphPoint& point : rank.points) work.push_back(point.work_ns);
    work.push_back(rank.end_ns - (rank.points.empty() ? rank.start_ns : rank.points.back().time_ns));
  }
  for (const GraphCall& call : graph.calls) out.call_ns.push_back(call.end_ns - call.begin_ns);
  return out;
}

GraphTimes time_graph(const EventGraph& graph, const Durations& durations) {
  GraphTimes times;
  for (const GraphRank& rank : graph.ranks) {
    std::vector<int64_t>& points = times.points.emplace_back();
    for (const GraphPoint& point : rank.points) points.push_back(point.time_ns);
  }
  for (const GraphCall& call : graph.calls) {
    times.call_begin.push_back(call.begin_ns);
    times.call_end.push_back(call.end_ns);
  }
  for (const auto& [r, index] : graph.order) {
    if (r == kNoNode) {
      const GraphCall& call = graph.calls[index];
      int64_t begin = -4 * kTimeLimit;
      for (const auto& [rank, p] : call.posts) begin = std::max(begin, times.points[rank][p]);
      if (call.before != kNoNode) begin = std::max(begin, times.call_end[call.before]);
      if (begin > -4 * kTimeLimit) times.call_begin[index] = begin + call.extra_ns;
      times.call_end[index] = times.call_begin[index] + durations.call_ns[index];
      continue;
    }
    const GraphPoint& point = graph.ranks[r].points[index];
    const int64_t from = index > 0 ? times.points[r][index - 1] : graph.ranks[r].start_ns;
    times.points[r][index] = from + durations.work_ns[r][index];
    if (point.wait) times.points[r][index] = std::max(times.points[r][index], times.call_end[point.call]);
  }
  bool any = false;
  const auto reach = [&](int64_t end) {
    times.end_ns = any ? std::max(times.end_ns, end) : end;
    any = true;
  };
  for (size_t r = 0; r < graph.ranks.size(); ++r) {
    const std::vector<int64_t>& points = times.points[r];
    times.rank_end.push_back((points.empty() ? graph.ranks[r].start_ns : points.back()) + durations.work_ns[r].back());
    if (graph.ranks[r].end_ns > graph.ranks[r].start_ns) reach(times.rank_end.back());
  }
  for (const int64_t end : times.call_end) reach(end);
  return times;
}

}  // namespace ranklab::viz
