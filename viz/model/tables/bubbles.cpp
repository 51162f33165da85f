#include "viz/model/tables/bubbles.h"

#include <algorithm>
#include <map>

#include "core/trace/trace_level.h"
#include "viz/model/store/stalls.h"
#include "viz/model/store/time_text.h"

namespace ranklab::viz {
namespace {

// Analyses one rank: its stalls, the time before it began and after it was done, and their causes.
class RankFinder {
 public:
  RankFinder(const TraceStore& store, const Window& window, size_t rank_index)
      : store_(store), window_(window), index_(rank_index), trace_(store.trace(rank_index)) {
    if (has_phases_only(trace_)) {
      lost_.push_back(window.range);
      return;
    }
    for (TimeRange range : store.lost(rank_index)) {
      range = {std::max(range.begin_ns, window.range.begin_ns), std::min(range.end_ns, window.range.end_ns)};
      if (!range.empty()) lost_.push_back(range);
    }
  }

  RankBubbles find() {
    note_work();
    const bool recorded = records_stalls(trace_, store_.clock());
    if (recorded) {
      outside_steps();
      for (const Stall& stall : recorded_stalls(trace_, window_)) add(stall);
    } else {
      for (const Stall& stall : apparent_stalls(trace_, store_.clock(), window_, window_.range)) add(stall);
      gaps();
    }
    return sum();
  }

 private:
  struct Work {
    int64_t first_ns = 0;
    int64_t last_ns = 0;
    TimeRange extent;  // of all its events
    bool any = false;  // whether it has a compute span
    bool pipeline = false;
  };

  void note_work() {
    for (const Event& event : trace_.events) {
      if (is_slice(event)) recorded_ns_ = std::max(recorded_ns_, end_ns(event, store_.clock()));
      last_step_ = std::max(last_step_, event.step);
      if (!is_slice(event) || !window_.has(event, store_.clock())) continue;
      const int64_t begin = begin_ns(event, store_.clock());
      const int64_t end = std::max(begin, end_ns(event, store_.clock()));
      const TimeRange own = own_time(event, {begin, end});
      const auto [it, inserted] = work_.try_emplace(event.step);
      Work& work = it->second;
      work.extent =
          inserted ? own
                   : TimeRange{std::min(work.extent.begin_ns, own.begin_ns), std::max(work.extent.end_ns, own.end_ns)};
      if (event.kind != EventKind::kCompute) continue;
      work.first_ns = work.any ? std::min(work.first_ns, begin) : begin;
      work.last_ns = work.any ? std::max(work.last_ns, end) : end;
      work.any = true;
      work.pipeline = work.pipeline || event.stage >= 0;
    }
  }

  // The time in which an event involved the rank: a call that nobody waited for may end long after the rank is done.
  TimeRange own_time(const Event& event, TimeRange drawn) const {
    if (event.kind != EventKind::kCollective || event.virtual_posted_ns == kNoTime) return drawn;
    const bool waited = event.virtual_exposed_ns + event.virtual_peer_wait_ns > 0;
    return {event.virtual_posted_ns, waited ? drawn.end_ns : event.virtual_posted_ns};
  }

  // Adds the time before the rank began, after it was done, and between recorded steps that are not consecutive.
  void outside_steps() {
    std::vector<TimeRange> extents;
    for (const auto& [step, work] : work_) extents.push_back(work.extent);
    std::sort(extents.begin(), extents.end(),
              [](const TimeRange& a, const TimeRange& b) { return a.begin_ns < b.begin_ns; });
    int64_t reached = window_.range.begin_ns;
    for (size_t i = 0; i < extents.size(); ++i) {
      if (extents[i].begin_ns > reached)
        push({{reached, extents[i].begin_ns}, i == 0 ? BubbleCause::kWarmUp : BubbleCause::kHost, kNoEvent, -1, ""});
      reached = std::max(reached, extents[i].end_ns);
    }
    // In a partial trace, a rank that has recorded nothing in a step has not begun it.
    const BubbleCause rest = extents.empty() && store_.partial() ? BubbleCause::kWarmUp : BubbleCause::kDrain;
    push({{reached, window_.range.end_ns}, rest, kNoEvent, -1, ""});
  }

  // Adds the time that neither compute nor a call covers.
  void gaps() {
    std::vector<TimeRange> covered = compute_spans(trace_, store_.clock(), window_, window_.range);
    if (covered.empty() && idle_.empty()) return push({window_.range, BubbleCause::kHost, kNoEvent, -1, ""});
    const int64_t first = covered.empty() ? window_.range.end_ns : covered.front().begin_ns;
    const int64_t last = covered.empty() ? window_.range.begin_ns : covered.back().end_ns;
    for (const IdleInterval& idle : idle_) covered.push_back(idle.range);
    std::sort(covered.begin(), covered.end(),
              [](const TimeRange& a, const TimeRange& b) { return a.begin_ns < b.begin_ns; });
    int64_t reached = window_.range.begin_ns;
    const auto gap = [&](int64_t end) {
      const BubbleCause cause = end <= first      ? BubbleCause::kWarmUp
                                : reached >= last ? BubbleCause::kDrain
                                                  : BubbleCause::kHost;
      push({{reached, end}, cause, kNoEvent, -1, ""});
    };
    for (const TimeRange& range : covered) {
      gap(range.begin_ns);
      reached = std::max(reached, range.end_ns);
    }
    gap(window_.range.end_ns);
  }

  void push(IdleInterval idle) {
    idle.range.begin_ns = std::max(idle.range.begin_ns, window_.range.begin_ns);
    idle.range.end_ns = std::min(idle.range.end_ns, window_.range.end_ns);
    if (store_.partial() && idle.event == kNoEvent && idle.range.end_ns > recorded_ns_) {
      const int64_t from = std::max(idle.range.begin_ns, recorded_ns_);
      unrecorded_ = unrecorded_.empty() ? TimeRange{from, idle.range.end_ns}
                                        : TimeRange{std::min(unrecorded_.begin_ns, from), idle.range.end_ns};
      idle.range.end_ns = from;
    }
    // In lost times it is unknown whether the rank was idle or working.
    const int64_t end_ns = idle.range.end_ns;
    for (const TimeRange& lost : lost_) {
      idle.range.end_ns = std::min(end_ns, lost.begin_ns);
      if (!idle.range.empty()) idle_.push_back(idle);
      idle.range.begin_ns = std::max(idle.range.begin_ns, lost.end_ns);
    }
    idle.range.end_ns = end_ns;
    if (!idle.range.empty()) idle_.push_back(std::move(idle));
  }

  void add(const Stall& stall) {
    const Event& event = trace_.events[stall.event];
    if (stall.transfer_ns > stall.begin_ns) {
      IdleInterval wait{{stall.begin_ns, stall.transfer_ns}, cause_of(event, stall), stall.event, -1, ""};
      name_peer(event, stall, wait);
      push(std::move(wait));
    }
    push({{stall.transfer_ns, stall.end_ns}, BubbleCause::kExposed, stall.event, -1, ""});
  }

  BubbleCause cause_of(const Event& event, const Stall& stall) const {
    const bool message = event.verb == Verb::kSend || event.verb == Verb::kRecv;
    const auto work = work_.find(event.step);
    const BubbleCause otherwise = message ? BubbleCause::kDependency : BubbleCause::kStraggler;
    if (work == work_.end() || !work->second.any) return otherwise;
    // Before its first work, a pipeline rank waits for its input; without a pipeline, a rank waits for a late member.
    if (stall.end_ns <= work->second.first_ns && (message || work->second.pipeline)) return BubbleCause::kWarmUp;
    // In a partial trace it is not known whether more work follows in the last step.
    const bool over = !store_.partial() || event.step < last_step_;
    if (over && stall.begin_ns >= work->second.last_ns && work->second.pipeline) return BubbleCause::kDrain;
    return otherwise;
  }

  // Finds the member that posted last, and what it had just done.
  void name_peer(const Event& event, const Stall& stall, IdleInterval& wait) const {
    const MatchedCall* call = store_.calls().of({index_, stall.event});
    if (call == nullptr) return;
    std::optional<EventRef> last;
    int64_t last_ns = -2 * kTimeLimit;
    for (const EventRef side : call->sides) {
      if (side.rank_index == index_) continue;
      const Event& other = store_.event(side);
      const bool virtual_time = store_.clock() == TraceClock::kVirtual && other.virtual_posted_ns != kNoTime;
      const int64_t posted = virtual_time ? other.virtual_posted_ns : begin_ns(other, store_.clock());
      if (posted <= last_ns) continue;
      last_ns = posted;
      last = side;
    }
    if (!last) {  // the peer's events are not in the trace
      const std::vector<int>* group = group_of(trace_, event.axis);
      if (group != nullptr && event.peer >= 0 && static_cast<size_t>(event.peer) < group->size())
        wait.waits_for_rank = (*group)[static_cast<size_t>(event.peer)];
      return;
    }
    wait.waits_for_rank = store_.rank(last->rank_index).global_rank;
    if (const auto work = work_before(store_, last->rank_index, last_ns)) wait.waits_for = store_.text(*work);
  }

  RankBubbles sum() {
    RankBubbles out;
    out.global_rank = trace_.global_rank;
    std::stable_sort(idle_.begin(), idle_.end(),
                     [](const IdleInterval& a, const IdleInterval& b) { return a.range.begin_ns < b.range.begin_ns; });
    int64_t reached = window_.range.begin_ns;
    for (IdleInterval& idle : idle_) {
      idle.range.begin_ns = std::max(idle.range.begin_ns, reached);
      if (idle.range.empty()) continue;
      reached = idle.range.end_ns;
      out.time.by_cause_ns[static_cast<size_t>(idle.cause)] += idle.range.length_ns();
      (idle.cause == BubbleCause::kExposed ? out.time.exposed_ns : out.time.bubble_ns) += idle.range.length_ns();
      out.idle.push_back(std::move(idle));
    }
    out.unrecorded = unrecorded_;
    out.lost = lost_;
    out.time.total_ns = window_.range.length_ns() - unrecorded_.length_ns();
    for (const TimeRange& lost : lost_) out.time.total_ns -= lost.length_ns();
    out.time.total_ns = std::max<int64_t>(0, out.time.total_ns);
    out.time.busy_ns = out.time.total_ns - out.time.exposed_ns - out.time.bubble_ns;
    return out;
  }

  const TraceStore& store_;
  const Window& window_;
  size_t index_;
  const RankTrace& trace_;
  std::map<int, Work> work_;  // by step
  std::vector<IdleInterval> idle_;
  int64_t recorded_ns_ = -2 * kTimeLimit;  // the end of the rank's last event in any step
  int last_step_ = -1;
  TimeRange unrecorded_;
  std::vector<TimeRange> lost_;
};

}  // namespace

double TimeSplit::busy_share() const { return share_of(busy_ns, total_ns); }
double TimeSplit::exposed_share() const { return share_of(exposed_ns, total_ns); }
double TimeSplit::bubble_of_total() const { return share_of(bubble_ns, total_ns); }
double TimeSplit::bubble_of_ideal() const { return share_of(bubble_ns, busy_ns); }

std::array<std::string, 4> share_texts(const TimeSplit& time) {
  if (time.total_ns == 0) return {"-", "-", "-", "-"};
  return {format_percent(time.busy_share()), format_percent(time.bubble_of_total()),
          format_percent(time.bubble_of_ideal()), format_percent(time.exposed_share())};
}

BubbleReport find_bubbles(const TraceStore& store, const Window& window) {
  BubbleReport report;
  report.range = window.range;
  for (size_t r = 0; r < store.ranks().size(); ++r) {
    report.ranks.push_back(RankFinder(store, window, r).find());
    const TimeSplit& time = report.ranks.back().time;
    report.all.total_ns += time.total_ns;
    report.all.busy_ns += time.busy_ns;
    report.all.exposed_ns += time.exposed_ns;
    report.all.bubble_ns += time.bubble_ns;
    for (size_t c = 0; c < kBubbleCauses; ++c) report.all.by_cause_ns[c] += time.by_cause_ns[c];
  }
  return report;
}

std::string_view why_phases_only(const TraceStore& store) {
  const bool any = std::any_of(store.traces().begin(), store.traces().end(), has_phases_only);
  return any ? "The trace has phases only: what ranks did in them, waited for and sent was not recorded; ./ranklab "
               "train --trace-level action records it."
             : "";
}

std::string describe(const IdleInterval& idle) {
  const std::string cause(name(idle.cause));
  if (idle.waits_for_rank < 0) return cause;
  std::string text = "waits for r" + std::to_string(idle.waits_for_rank);
  if (!idle.waits_for.empty()) text += " " + idle.waits_for;
  return text + " (" + cause + ")";
}

std::vector<float> idle_strip(const BubbleReport& report, TimeRange range, int columns) {
  std::vector<float> strip(static_cast<size_t>(std::max(columns, 0)), 0.0F);
  if (strip.empty() || range.empty() || report.ranks.empty()) return strip;
  const double per_ns = static_cast<double>(strip.size()) / static_cast<double>(range.length_ns());
  const float weight = 1.0F / static_cast<float>(report.ranks.size());
  for (const RankBubbles& rank : report.ranks) {
    for (const IdleInterval& idle : rank.idle) {
      const double from = static_cast<double>(idle.range.begin_ns - range.begin_ns) * per_ns;
      const double to = static_cast<double>(idle.range.end_ns - range.begin_ns) * per_ns;
      const double last = std::min(to, static_cast<double>(strip.size()));
      for (double x = std::max(from, 0.0); x < last;) {
        const auto column = static_cast<size_t>(x);
        const double end = std::min(last, static_cast<double>(column + 1));
        strip[std::min(column, strip.size() - 1)] += weight * static_cast<float>(end - x);
        x = static_cast<double>(column + 1);
      }
    }
  }
  return strip;
}

}  // namespace ranklab::viz
