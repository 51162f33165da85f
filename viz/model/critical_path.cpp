#include "viz/model/critical_path.h"

#include <algorithm>

#include "viz/model/store/event_graph.h"
#include "viz/model/store/stalls.h"

namespace ranklab::viz {
namespace {

using Kind = PathSegment::Kind;

// Walks backwards in recorded time. Every step goes back in time, or over a call that was not visited yet.
class Walker {
 public:
  Walker(const TraceStore& store, const EventGraph& graph)
      : store_(store), graph_(graph), passed_(graph.calls.size(), false), time_(graph.range.end_ns) {}

  std::vector<PathSegment> walk() {
    uint32_t call = start();
    while (!done_) call = call != kNoNode ? over(call) : along();
    std::reverse(segments_.begin(), segments_.end());
    return std::move(segments_);
  }

 private:
  // The rank that ends last, or the call that does, if no rank waited for it.
  uint32_t start() {
    bool any = false;
    for (uint32_t r = 0; r < graph_.ranks.size(); ++r) {
      if (graph_.ranks[r].end_ns <= graph_.ranks[r].start_ns) continue;
      if (!any || graph_.ranks[r].end_ns > graph_.ranks[rank_].end_ns) rank_ = r;
      any = true;
    }
    const int64_t ranks_end = any ? graph_.ranks[rank_].end_ns : graph_.range.begin_ns;
    uint32_t last = kNoNode;
    for (uint32_t c = 0; c < graph_.calls.size(); ++c) {
      if (graph_.calls[c].end_ns > (last == kNoNode ? ranks_end : graph_.calls[last].end_ns)) last = c;
    }
    back_to(last == kNoNode ? ranks_end : graph_.calls[last].end_ns, Kind::kUnknown, {});
    if (!any && last == kNoNode) finish();
    return last;
  }

  void back_to(int64_t begin, Kind kind, std::vector<EventRef> events) {
    begin = std::clamp(begin, graph_.range.begin_ns, time_);
    if (begin == time_) return;
    segments_.push_back({kind, rank_, {begin, time_}, std::move(events)});
    time_ = begin;
  }
  void finish() {
    back_to(graph_.range.begin_ns, Kind::kUnknown, {});
    done_ = true;
  }

  // Follows the rank's work back to the end of its last stall; RETURNS: the call it waited for, or kNoNode at the
  // rank's start.
  uint32_t along() {
    const GraphRank& rank = graph_.ranks[rank_];
    auto point = std::upper_bound(rank.points.begin(), rank.points.end(), time_,
                                  [](int64_t time, const GraphPoint& p) { return time < p.time_ns; });
    while (point != rank.points.begin()) {
      --point;
      if (point->lost_ns == 0 || passed_[point->call]) continue;
      back_to(point->time_ns, Kind::kWork, work(point->time_ns));
      return point->call;
    }
    back_to(rank.start_ns, Kind::kWork, work(rank.start_ns));
    finish();
    return kNoNode;
  }

  // Follows the transfer back to its last prerequisite: the previous call on its lane, or the member that posted last.
  uint32_t over(uint32_t index) {
    const GraphCall& call = graph_.calls[index];
    passed_[index] = true;
    const MatchedCall* matched = store_.calls().of(call.event);
    back_to(call.begin_ns, Kind::kTransfer, matched->sides);
    const std::pair<uint32_t, uint32_t>* last = nullptr;
    int64_t posted = graph_.range.begin_ns;
    for (const auto& post : call.posts) {
      const int64_t time = graph_.ranks[post.first].points[post.second].time_ns;
      if (last != nullptr && time <= posted) continue;
      posted = time;
      last = &post;
    }
    const uint32_t before = call.before;
    if (before != kNoNode && !passed_[before] && (last == nullptr || graph_.calls[before].end_ns > posted)) {
      back_to(graph_.calls[before].end_ns, Kind::kUnknown, {});
      return before;
    }
    if (last == nullptr) {
      finish();
      return kNoNode;
    }
    back_to(posted, Kind::kUnknown, {});
    rank_ = last->first;
    if (time_ <= graph_.range.begin_ns) done_ = true;
    return kNoNode;
  }

  // The compute spans between `begin` and now.
  std::vector<EventRef> work(int64_t begin) const {
    std::vector<EventRef> events;
    const RankTrace& trace = store_.trace(rank_);
    for (const Row& row : store_.rank(rank_).rows) {
      const Track& track = row.tracks.front();
      if (track.size() == 0 || trace.events[track.event.front()].kind != EventKind::kCompute) continue;
      for (size_t i = track.first_ending_after(begin); i < track.size() && track.begin_ns[i] < time_; ++i)
        events.push_back({rank_, track.event[i]});
    }
    return events;
  }

  const TraceStore& store_;
  const EventGraph& graph_;
  std::vector<bool> passed_;
  std::vector<PathSegment> segments_;
  uint32_t rank_ = 0;
  int64_t time_;
  bool done_ = false;
};

void set_slack(const TraceStore& store, const Window& window, const EventGraph& graph, CriticalPath& path) {
  const GraphSlack slack = find_slack(graph);
  for (size_t c = 0; c < graph.calls.size(); ++c) {
    for (const EventRef side : store.calls().of(graph.calls[c].event)->sides)
      path.slack_ns[side.rank_index][side.event_index] = slack.calls[c];
  }
  for (size_t r = 0; r < store.traces().size(); ++r) {
    if (!records_stalls(store.trace(r), store.clock())) continue;
    const std::vector<Event>& events = store.trace(r).events;
    for (size_t e = 0; e < events.size(); ++e) {
      const bool own = events[e].kind == EventKind::kCompute || events[e].kind == EventKind::kPhase;
      if (own && window.has(events[e], store.clock()))
        path.slack_ns[r][e] = slack_at(graph, slack, r, end_ns(events[e], store.clock()));
    }
  }
}

}  // namespace

int64_t CriticalPath::length_ns() const {
  int64_t sum = 0;
  for (const PathSegment& segment : segments) sum += segment.range.length_ns();
  return sum;
}

bool CriticalPath::on_path(EventRef ref) const { return path_events[ref.rank_index][ref.event_index]; }

CriticalPath find_critical_path(const TraceStore& store, const Window& window) {
  CriticalPath path;
  path.range = window.range;
  for (const RankTrace& trace : store.traces()) {
    path.slack_ns.emplace_back(trace.events.size(), kNoTime);
    path.path_events.emplace_back(trace.events.size(), false);
  }
  if (store.empty() || window.range.empty()) return path;
  const EventGraph graph = make_event_graph(store, window);
  path.segments = Walker(store, graph).walk();
  for (const PathSegment& segment : path.segments) {
    for (const EventRef ref : segment.events) path.path_events[ref.rank_index][ref.event_index] = true;
  }
  const auto recorded = [&](const RankTrace& trace) { return records_stalls(trace, store.clock()); };
  if (std::any_of(store.traces().begin(), store.traces().end(), recorded)) set_slack(store, window, graph, path);
  return path;
}

std::vector<PathStay> stays_of(const CriticalPath& path) {
  std::vector<PathStay> stays;
  for (size_t i = 0; i < path.segments.size(); ++i) {
    const PathSegment& segment = path.segments[i];
    if (stays.empty() || stays.back().rank_index != segment.rank_index)
      stays.push_back({.rank_index = segment.rank_index, .first = i, .last = i, .range = segment.range});
    PathStay& stay = stays.back();
    stay.last = i + 1;
    stay.range.end_ns = segment.range.end_ns;
    const int64_t length = segment.range.length_ns();
    if (segment.kind == PathSegment::Kind::kWork) stay.work_ns += length;
    if (segment.kind == PathSegment::Kind::kTransfer) stay.transfer_ns += length;
  }
  return stays;
}

}  // namespace ranklab::viz
