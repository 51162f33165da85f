#include "viz/model/store/stalls.h"

#include <algorithm>
#include <limits>

namespace ranklab::viz {
namespace {

void make_disjoint(std::vector<Stall>& stalls) {
  std::stable_sort(stalls.begin(), stalls.end(), [](const Stall& a, const Stall& b) { return a.end_ns < b.end_ns; });
  int64_t reached = -2 * kTimeLimit;
  for (Stall& stall : stalls) {
    stall.begin_ns = std::max(stall.begin_ns, reached);
    stall.transfer_ns = std::clamp(stall.transfer_ns, stall.begin_ns, std::max(stall.begin_ns, stall.end_ns));
    reached = std::max(reached, stall.end_ns);
  }
  std::erase_if(stalls, [](const Stall& stall) { return stall.end_ns <= stall.begin_ns; });
}

}  // namespace

bool records_stalls(const RankTrace& trace, TraceClock clock) {
  if (clock != TraceClock::kVirtual) return false;
  // A rank that is alone in its groups has no peer to wait for; between its compute spans it works, for example in its
  // optimizer.
  const auto alone = [](const TraceGroup& group) { return group.global_ranks.size() == 1; };
  if (!trace.groups.empty() && std::all_of(trace.groups.begin(), trace.groups.end(), alone)) return true;
  return std::any_of(trace.events.begin(), trace.events.end(), [](const Event& event) {
    return event.kind == EventKind::kCollective && event.virtual_posted_ns != kNoTime;
  });
}

std::vector<Stall> recorded_stalls(const RankTrace& trace, const Window& window) {
  std::vector<Stall> stalls;
  for (uint32_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (event.kind != EventKind::kCollective) continue;
    const int64_t lost = event.virtual_exposed_ns + event.virtual_peer_wait_ns;
    if (lost == 0 || (window.step >= 0 && event.step != window.step)) continue;
    const int64_t end = event.virtual_end_ns;
    if (end <= window.range.begin_ns || end - lost >= window.range.end_ns) continue;
    stalls.push_back({end - lost, end - event.virtual_exposed_ns, end, i});
  }
  make_disjoint(stalls);
  return stalls;
}

std::vector<TimeRange> compute_spans(const RankTrace& trace, TraceClock clock, const Window& window, TimeRange range) {
  std::vector<TimeRange> spans;
  for (const Event& event : trace.events) {
    if (event.kind != EventKind::kCompute || !window.has(event, clock)) continue;
    const TimeRange span = {std::max(begin_ns(event, clock), range.begin_ns),
                            std::min(end_ns(event, clock), range.end_ns)};
    if (!span.empty()) spans.push_back(span);
  }
  std::sort(spans.begin(), spans.end(), [](const TimeRange& a, const TimeRange& b) { return a.begin_ns < b.begin_ns; });
  std::vector<TimeRange> joined;
  for (const TimeRange& span : spans) {
    if (!joined.empty() && span.begin_ns <= joined.back().end_ns) {
      joined.back().end_ns = std::max(joined.back().end_ns, span.end_ns);
    } else {
      joined.push_back(span);
    }
  }
  return joined;
}

std::vector<Stall> apparent_stalls(const RankTrace& trace, TraceClock clock, const Window& window, TimeRange range) {
  std::vector<Stall> calls;
  for (uint32_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (event.kind != EventKind::kCollective || !window.has(event, clock)) continue;
    const int64_t matched = clock == TraceClock::kVirtual ? event.virtual_matched_ns : event.wall_matched_ns;
    calls.push_back({std::max(begin_ns(event, clock), range.begin_ns),
                     matched == kNoTime ? begin_ns(event, clock) : matched,
                     std::min(end_ns(event, clock), range.end_ns), i});
  }
  make_disjoint(calls);
  std::vector<Stall> stalls;
  const std::vector<TimeRange> busy = compute_spans(trace, clock, window, range);
  size_t first = 0;
  for (const Stall& call : calls) {
    int64_t from = call.begin_ns;
    const auto add = [&](int64_t begin, int64_t end) {
      if (begin < end) stalls.push_back({begin, std::clamp(call.transfer_ns, begin, end), end, call.event});
    };
    while (first < busy.size() && busy[first].end_ns <= call.begin_ns) ++first;
    for (size_t i = first; i < busy.size() && busy[i].begin_ns < call.end_ns; ++i) {
      add(from, busy[i].begin_ns);
      from = std::max(from, busy[i].end_ns);
    }
    add(from, call.end_ns);
  }
  return stalls;
}

namespace {

// The last phase, such as the optimizer, that began in this time.
std::optional<EventRef> phase_between(const TraceStore& store, size_t rank_index, int64_t from_ns, int64_t time_ns) {
  std::optional<EventRef> last;
  for (const Row& row : store.rank(rank_index).rows) {
    for (const Track& track : row.tracks) {
      const auto after = std::ranges::lower_bound(track.begin_ns, time_ns);
      if (after == track.begin_ns.begin() || *(after - 1) < from_ns) continue;
      const EventRef ref{rank_index, track.event[static_cast<size_t>(after - track.begin_ns.begin()) - 1]};
      const bool later = !last || store.begin_ns(ref) >= store.begin_ns(*last);
      if (store.event(ref).kind == EventKind::kPhase && later) last = ref;
    }
  }
  return last;
}

}  // namespace

std::optional<EventRef> work_before(const TraceStore& store, size_t rank_index, int64_t time_ns) {
  const RankTrace& trace = store.trace(rank_index);
  for (const Row& row : store.rank(rank_index).rows) {
    const Track& track = row.tracks.front();
    if (track.size() == 0 || trace.events[track.event.front()].kind != EventKind::kCompute) continue;
    const size_t i = track.first_ending_after(time_ns);
    if (i < track.size() && track.begin_ns[i] < time_ns) return EventRef{rank_index, track.event[i]};
    const int64_t idle_from = i > 0 ? track.end_ns[i - 1] : std::numeric_limits<int64_t>::min();
    if (const auto phase = phase_between(store, rank_index, idle_from, time_ns)) return phase;
    if (i > 0) return EventRef{rank_index, track.event[i - 1]};
  }
  return std::nullopt;
}

}  // namespace ranklab::viz
