#include "viz/model/store/event_graph.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "viz/model/store/stalls.h"

namespace ranklab::viz {
namespace {

class Builder {
 public:
  Builder(const TraceStore& store, const Window& window) : store_(store), window_(window) {}

  EventGraph build() {
    graph_.range = window_.range;
    graph_.ranks.resize(store_.traces().size());
    for (const RankTrace& trace : store_.traces()) call_of_.emplace_back(trace.events.size(), kNoNode);
    for (const MatchedCall& matched : store_.calls().calls) add_call(matched);
    for (uint32_t r = 0; r < graph_.ranks.size(); ++r) add_rank(r);
    link_lanes();
    for (GraphCall& call : graph_.calls) set_extra(call);
    set_order();
    return std::move(graph_);
  }

 private:
  bool wanted(const Event& event) const {
    if (window_.step >= 0) return event.step == window_.step;
    return window_.has(event, store_.clock());
  }
  bool wall() const { return store_.clock() == TraceClock::kWall; }
  int64_t posted(const Event& event) const {
    if (wall() || event.virtual_posted_ns == kNoTime) return begin_ns(event, store_.clock());
    return event.virtual_posted_ns;
  }

  void add_call(const MatchedCall& matched) {
    GraphCall call;
    bool any = false;
    for (const EventRef side : matched.sides) {
      const Event& event = store_.event(side);
      if (!wanted(event)) continue;
      const bool from_match = wall() && event.wall_matched_ns != kNoTime;
      const int64_t begin = from_match ? event.wall_matched_ns : begin_ns(event, store_.clock());
      call.begin_ns = any ? std::max(call.begin_ns, begin) : begin;
      call.end_ns = any ? std::max(call.end_ns, store_.end_ns(side)) : store_.end_ns(side);
      if (!any) call.event = side;
      any = true;
    }
    if (!any) return;
    call.end_ns = std::max(call.end_ns, call.begin_ns);
    const auto index = static_cast<uint32_t>(graph_.calls.size());
    for (const EventRef side : matched.sides) {
      if (wanted(store_.event(side))) call_of_[side.rank_index][side.event_index] = index;
    }
    graph_.calls.push_back(std::move(call));
  }

  void add_rank(uint32_t r) {
    const RankTrace& trace = store_.trace(r);
    const auto& calls = call_of_[r];
    std::map<uint32_t, Stall> stalls;
    const std::vector<Stall> found = records_stalls(trace, store_.clock())
                                         ? recorded_stalls(trace, window_)
                                         : apparent_stalls(trace, store_.clock(), window_, window_.range);
    for (const Stall& stall : found) {
      if (stall.end_ns == end_ns(trace.events[stall.event], store_.clock())) stalls[stall.event] = stall;
    }
    GraphRank& rank = graph_.ranks[r];
    bool any = false;
    int64_t latest = -2 * kTimeLimit;  // the latest known time, in recording order
    for (uint32_t e = 0; e < trace.events.size(); ++e) {
      const Event& event = trace.events[e];
      if (!is_slice(event) || !wanted(event)) continue;
      const int64_t begin = begin_ns(event, store_.clock()), end = std::max(begin, end_ns(event, store_.clock()));
      int64_t own_begin = begin, own_end = end;
      if (calls[e] != kNoNode) {
        own_begin = posted(event);
        const auto stall = stalls.find(e);
        const int64_t lost = stall == stalls.end() ? 0 : end - stall->second.begin_ns;
        own_end = lost > 0 ? end : own_begin;
        rank.points.push_back({own_begin, 0, 0, calls[e], false});
        // If the rank did not stall in a send, the send does not affect the rank after its posting.
        if (lost > 0 || event.verb != Verb::kSend)
          rank.points.push_back({lost > 0 ? end : std::max({end, latest, own_begin}), lost, 0, calls[e], true});
      }
      latest = std::max(latest, own_end);
      rank.start_ns = any ? std::min(rank.start_ns, own_begin) : own_begin;
      rank.end_ns = any ? std::max(rank.end_ns, own_end) : own_end;
      any = true;
    }
    if (any) finish_rank(r);
  }

  void finish_rank(uint32_t r) {
    GraphRank& rank = graph_.ranks[r];
    // A wait for a call that ended after the rank's last known activity says nothing about the rank's own work.
    std::erase_if(rank.points, [&](const GraphPoint& point) { return point.time_ns > rank.end_ns; });
    // At equal times the order is: ends of stalls, then postings, then waits without duration.
    const auto kind = [](const GraphPoint& point) { return !point.wait ? 1 : point.lost_ns > 0 ? 0 : 2; };
    std::stable_sort(rank.points.begin(), rank.points.end(), [&](const GraphPoint& a, const GraphPoint& b) {
      return std::tuple(a.time_ns, kind(a)) < std::tuple(b.time_ns, kind(b));
    });
    int64_t reached = rank.start_ns;
    for (uint32_t p = 0; p < rank.points.size(); ++p) {
      GraphPoint& point = rank.points[p];
      point.lost_ns = std::clamp<int64_t>(point.lost_ns, 0, point.time_ns - reached);
      point.work_ns = point.time_ns - point.lost_ns - reached;
      reached = point.time_ns;
      GraphCall& call = graph_.calls[point.call];
      (point.wait ? call.waits : call.posts).emplace_back(r, p);
    }
  }

  // The calls of a group are sequential, and so are the messages with the same pair and tag.
  void link_lanes() {
    std::map<std::tuple<std::vector<int>, Axis, int, int, int>, std::vector<uint32_t>> lanes;
    for (uint32_t c = 0; c < graph_.calls.size(); ++c) {
      const EventRef ref = graph_.calls[c].event;
      const Event& event = store_.event(ref);
      const MatchedCall* matched = store_.calls().of(ref);
      if (matched->message) {
        const int self = store_.rank(ref.rank_index).global_rank;
        const bool send = event.verb == Verb::kSend;
        lanes[{matched->group, event.axis, send ? self : -1 - event.peer, send ? event.peer : -1 - self, event.tag}]
            .push_back(c);
      } else {
        lanes[{matched->group, event.axis, -1, -1, 0}].push_back(c);
      }
    }
    for (auto& [key, calls] : lanes) {
      std::stable_sort(calls.begin(), calls.end(), [&](uint32_t a, uint32_t b) {
        return store_.event(graph_.calls[a].event).sequence < store_.event(graph_.calls[b].event).sequence;
      });
      for (size_t i = 1; i < calls.size(); ++i) {
        // Some transports let calls of a group overlap; then there is no order to enforce.
        if (graph_.calls[calls[i - 1]].end_ns > graph_.calls[calls[i]].begin_ns) continue;
        graph_.calls[calls[i]].before = calls[i - 1];
        graph_.calls[calls[i - 1]].after = calls[i];
      }
    }
  }

  void set_extra(GraphCall& call) const {
    int64_t needed = -2 * kTimeLimit;
    for (const auto& [rank, point] : call.posts) needed = std::max(needed, graph_.ranks[rank].points[point].time_ns);
    if (call.before != kNoNode) needed = std::max(needed, graph_.calls[call.before].end_ns);
    call.extra_ns = call.posts.empty() && call.before == kNoNode ? 0 : call.begin_ns - needed;
  }

  // Kahn's algorithm.
  void set_order() {
    std::vector<std::vector<uint32_t>> needs(graph_.ranks.size());
    std::vector<uint32_t> call_needs(graph_.calls.size(), 0);
    std::vector<std::pair<uint32_t, uint32_t>>& order = graph_.order;
    for (uint32_t r = 0; r < needs.size(); ++r) {
      const std::vector<GraphPoint>& points = graph_.ranks[r].points;
      for (uint32_t p = 0; p < points.size(); ++p) {
        needs[r].push_back((p > 0 ? 1U : 0U) + (points[p].wait ? 1U : 0U));
        if (needs[r].back() == 0) order.emplace_back(r, p);
      }
    }
    for (uint32_t c = 0; c < graph_.calls.size(); ++c) {
      const GraphCall& call = graph_.calls[c];
      call_needs[c] = static_cast<uint32_t>(call.posts.size()) + (call.before != kNoNode ? 1U : 0U);
      if (call_needs[c] == 0) order.emplace_back(kNoNode, c);
    }
    const auto settle_call = [&](uint32_t c) {
      if (--call_needs[c] == 0) order.emplace_back(kNoNode, c);
    };
    const auto settle_point = [&](uint32_t r, uint32_t p) {
      if (--needs[r][p] == 0) order.emplace_back(r, p);
    };
    for (size_t i = 0; i < order.size(); ++i) {
      const auto [rank, index] = order[i];
      if (rank == kNoNode) {
        for (const auto& [r, p] : graph_.calls[index].waits) settle_point(r, p);
        if (graph_.calls[index].after != kNoNode) settle_call(graph_.calls[index].after);
      } else {
        const std::vector<GraphPoint>& points = graph_.ranks[rank].points;
        if (index + 1 < points.size()) settle_point(rank, index + 1);
        if (!points[index].wait) settle_call(points[index].call);
      }
    }
  }

  const TraceStore& store_;
  const Window& window_;
  EventGraph graph_;
  std::vector<std::vector<uint32_t>> call_of_;  // [rank][event]
};

}  // namespace

EventGraph make_event_graph(const TraceStore& store, const Window& window) { return Builder(store, window).build(); }

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
