#include "viz/model/what_if.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/error.h"
#include "viz/model/store/event_graph.h"
#include "viz/model/tables/op_table.h"

namespace ranklab::viz {
namespace {

using Totals = std::map<std::string, int64_t>;

// Answers many questions on the graph of one store.
class Asker {
 public:
  explicit Asker(const TraceStore& store) : store_(store), graph_(make_event_graph(store, store.whole())) {
    RANKLAB_CHECK(store.clock() == TraceClock::kVirtual, ErrorKind::kInvalidArgument, .where = "what-if",
                  .what = "needs the virtual clock", .got = "wall times, which do not say what waited for what",
                  .fix = "use a trace of simulated ranks (ranklab train)");
    base_ = recorded_durations(graph_);
    end_ns_ = time_graph(graph_, base_).end_ns;
    on_path_ = on_path(base_, time_graph(graph_, base_), {});
  }

  WhatIf ask(const std::string& what, const std::function<bool(const RankTrace&, const Event&)>& free) const {
    Durations durations = base_;
    std::set<std::string> names;
    for (size_t c = 0; c < graph_.calls.size(); ++c) {
      const EventRef ref = graph_.calls[c].event;
      if (!free(store_.trace(ref.rank_index), store_.event(ref))) continue;
      durations.call_ns[c] = 0;
      names.insert(op_name(store_.trace(ref.rank_index), store_.event(ref)));
    }
    for (size_t r = 0; r < graph_.ranks.size(); ++r) free_work(r, free, durations.work_ns[r], names);
    const GraphTimes times = time_graph(graph_, durations);
    WhatIf out;
    out.what = what;
    out.makespan_ns = times.end_ns - graph_.range.begin_ns;
    out.gain_ns = end_ns_ - times.end_ns;
    for (const std::string& name : names) {
      const auto found = on_path_.find(name);
      if (found != on_path_.end()) out.on_path_ns += found->second;
    }
    int64_t most = 0;
    for (const auto& [name, time] : on_path(durations, times, names)) {
      if (time <= most) continue;
      most = time;
      out.next_bottleneck = name;
    }
    return out;
  }

 private:
  // Calls visit(point, span, overlap) for each part of a rank's work that lies in a compute span of depth 0.
  template <typename Visit>
  void each_part(size_t r, Visit visit) const {
    const GraphRank& rank = graph_.ranks[r];
    for (const Row& row : store_.rank(r).rows) {
      const Track& track = row.tracks.front();
      if (track.size() == 0 || store_.trace(r).events[track.event.front()].kind != EventKind::kCompute) continue;
      size_t span = 0;
      for (size_t p = 0; p <= rank.points.size(); ++p) {
        const int64_t from = p > 0 ? rank.points[p - 1].time_ns : rank.start_ns;
        const int64_t to = p < rank.points.size() ? rank.points[p].time_ns - rank.points[p].lost_ns : rank.end_ns;
        while (span < track.size() && track.end_ns[span] <= from) ++span;
        for (size_t i = span; i < track.size() && track.begin_ns[i] < to; ++i) {
          const int64_t overlap = std::min(to, track.end_ns[i]) - std::max(from, track.begin_ns[i]);
          if (overlap > 0) visit(p, store_.trace(r).events[track.event[i]], overlap);
        }
      }
    }
  }

  void free_work(size_t r, const std::function<bool(const RankTrace&, const Event&)>& free, std::vector<int64_t>& work,
                 std::set<std::string>& names) const {
    each_part(r, [&](size_t p, const Event& event, int64_t overlap) {
      if (!free(store_.trace(r), event)) return;
      work[p] = std::max<int64_t>(0, work[p] - overlap);
      names.insert(op_name(store_.trace(r), event));
    });
  }

  // The composition of a timing's critical path, without the names that take no time.
  Totals on_path(const Durations& durations, const GraphTimes& times, const std::set<std::string>& free) const {
    std::vector<std::vector<size_t>> passed(graph_.ranks.size());  // parts of a rank's work, by the next point
    Totals totals;
    uint32_t r = 0, call = kNoNode;
    int64_t latest = -4 * kTimeLimit;
    for (uint32_t i = 0; i < graph_.ranks.size(); ++i) {
      if (times.rank_end[i] > latest) {
        latest = times.rank_end[i];
        r = i;
      }
    }
    if (graph_.ranks.empty()) return totals;
    size_t p = graph_.ranks[r].points.size();
    std::vector<bool> seen(graph_.calls.size(), false);
    for (size_t steps = graph_.order.size() + graph_.ranks.size() + 1; steps > 0; --steps) {
      if (call != kNoNode) {
        seen[call] = true;
        const EventRef ref = graph_.calls[call].event;
        totals[op_name(store_.trace(ref.rank_index), store_.event(ref))] += durations.call_ns[call];
        if (!leave_call(times, seen, call, r, p)) break;
        continue;
      }
      passed[r].push_back(p);
      if (p == 0) break;
      const GraphPoint& before = graph_.ranks[r].points[p - 1];
      const bool bound = before.wait && !seen[before.call] && times.points[r][p - 1] == times.call_end[before.call] &&
                         times.call_end[before.call] > work_end(durations, times, r, p - 1);
      if (bound) {
        call = before.call;
      } else {
        --p;
      }
    }
    add_work(passed, free, totals);
    return totals;
  }

  int64_t work_end(const Durations& durations, const GraphTimes& times, uint32_t r, size_t p) const {
    return (p > 0 ? times.points[r][p - 1] : graph_.ranks[r].start_ns) + durations.work_ns[r][p];
  }

  // Moves to the previous call on the lane (in `call`), or to the last poster's point. RETURNS: false if there is
  // neither.
  bool leave_call(const GraphTimes& times, const std::vector<bool>& seen, uint32_t& call, uint32_t& r,
                  size_t& p) const {
    const GraphCall& from = graph_.calls[call];
    int64_t latest = -4 * kTimeLimit;
    for (const auto& [rank, point] : from.posts) {
      if (times.points[rank][point] <= latest) continue;
      latest = times.points[rank][point];
      r = rank;
      p = point;
    }
    const uint32_t before = from.before;
    call = kNoNode;
    if (before != kNoNode && !seen[before] && times.call_end[before] > latest) {
      call = before;
      return true;
    }
    return !from.posts.empty();
  }

  void add_work(const std::vector<std::vector<size_t>>& passed, const std::set<std::string>& free,
                Totals& totals) const {
    for (size_t r = 0; r < passed.size(); ++r) {
      if (passed[r].empty()) continue;
      std::vector<bool> wanted(graph_.ranks[r].points.size() + 1, false);
      for (const size_t p : passed[r]) wanted[p] = true;
      each_part(r, [&](size_t p, const Event& event, int64_t overlap) {
        const std::string name = op_name(store_.trace(r), event);
        if (wanted[p] && !free.contains(name)) totals[name] += overlap;
      });
    }
  }

  const TraceStore& store_;
  EventGraph graph_;
  Durations base_;
  int64_t end_ns_ = 0;
  Totals on_path_;
};

}  // namespace

WhatIf what_if_free(const TraceStore& store, const std::string& what,
                    const std::function<bool(const RankTrace& trace, const Event& event)>& free) {
  return Asker(store).ask(what, free);
}

std::vector<WhatIf> what_if_table(const TraceStore& store) {
  std::set<std::string> names;
  for (const RankTrace& trace : store.traces()) {
    for (const Event& event : trace.events) {
      if (event.kind == EventKind::kCompute || event.kind == EventKind::kCollective)
        names.insert(op_name(trace, event));
    }
  }
  const Asker asker(store);
  std::vector<WhatIf> table;
  for (const std::string& name : names) {
    table.push_back(asker.ask(name, [&](const RankTrace& trace, const Event& event) {
      return (event.kind == EventKind::kCompute || event.kind == EventKind::kCollective) &&
             op_name(trace, event) == name;
    }));
  }
  std::stable_sort(table.begin(), table.end(), [](const WhatIf& a, const WhatIf& b) { return a.gain_ns > b.gain_ns; });
  return table;
}

}  // namespace ranklab::viz
