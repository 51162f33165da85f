#include "viz/model/store/trace_store.h"

#include <algorithm>
#include <limits>
#include <map>
#include <span>
#include <utility>
#include <variant>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/trace/failed_event.h"
#include "viz/model/store/rows.h"

namespace ranklab::viz {
namespace {

// The step in which the run failed, and the calls in which the ranks were at that time, those of the fewest ranks
// first; "" if it did not fail.
std::string broke_off_text(std::span<const RankTrace> traces) {
  constexpr size_t kCalls = 4, kRanks = 8;
  int step = -1;
  std::map<std::string, std::vector<int>> ranks_in;
  for (const RankTrace& trace : traces) {
    step = std::max(step, failed_step(trace));
    if (const std::string call = unfinished_call(trace); !call.empty()) ranks_in[call].push_back(trace.global_rank);
  }
  if (step < 0) return "";
  std::string text = "the run failed in step " + std::to_string(step) + ", which ends here where it broke off";
  std::vector<std::pair<std::string, std::vector<int>>> calls(ranks_in.begin(), ranks_in.end());
  std::ranges::stable_sort(calls, {}, [](const auto& call) { return call.second.size(); });
  for (size_t i = 0; i < calls.size() && i < kCalls; ++i) {
    const auto& [call, ranks] = calls[i];
    text += "; " +
            (ranks.size() > kRanks ? std::to_string(ranks.size()) + " ranks"
                                   : "rank " + join(std::span<const int>(ranks), " ")) +
            " in " + call;
  }
  return text;
}

// Limits the values of a damaged file so that sums cannot overflow.
void bound_times(Event& event) {
  for (int64_t Event::*time :
       {&Event::virtual_begin_ns, &Event::virtual_end_ns, &Event::wall_begin_ns, &Event::wall_end_ns})
    event.*time = std::clamp(event.*time, -kTimeLimit, kTimeLimit);
  for (int64_t Event::*time : {&Event::virtual_posted_ns, &Event::virtual_matched_ns, &Event::virtual_first_byte_ns,
                               &Event::wall_matched_ns}) {
    if (event.*time != kNoTime) event.*time = std::clamp(event.*time, -kTimeLimit, kTimeLimit);
  }
  for (int64_t Event::*lost : {&Event::virtual_exposed_ns, &Event::virtual_peer_wait_ns})
    event.*lost = std::clamp<int64_t>(event.*lost, 0, kTimeLimit);
  for (int64_t Event::*bytes : {&Event::logical_bytes, &Event::algorithm_bytes, &Event::wire_bytes})
    event.*bytes = std::clamp<int64_t>(event.*bytes, 0, kBytesLimit);
  event.sequence = std::clamp<int64_t>(event.sequence, -1, kTimeLimit);
}

// Repairs times that no event can have: an end before its begin, more than kTimeLimit between them, or a begin before
// the virtual clock started. The event stays but gets no duration, so that sums contain only valid times. RETURNS:
// whether the times were invalid.
bool mend_times(Event& event, TraceClock clock) {
  const bool is_virtual = clock == TraceClock::kVirtual;
  int64_t& begin = is_virtual ? event.virtual_begin_ns : event.wall_begin_ns;
  int64_t& end = is_virtual ? event.virtual_end_ns : event.wall_end_ns;
  if (end >= begin && end - begin < kTimeLimit && (begin >= 0 || !is_virtual)) return false;
  if (is_virtual) begin = std::max<int64_t>(begin, 0);
  end = begin;
  return true;
}

std::string row_label(const RankTrace& trace) {
  const std::string number = std::to_string(trace.global_rank);
  const bool plain = trace.label.empty() || trace.label == "rank" + number;
  return "r" + number + (plain ? "" : " " + trace.label);
}

}  // namespace

bool Window::has(const Event& event, TraceClock clock) const {
  if (step >= 0) return event.step == step;
  return ranklab::begin_ns(event, clock) <= range.end_ns && ranklab::end_ns(event, clock) >= range.begin_ns;
}

size_t Track::first_ending_after(int64_t time_ns) const {
  return static_cast<size_t>(std::upper_bound(end_ns.begin(), end_ns.end(), time_ns) - end_ns.begin());
}

TraceStore::TraceStore(TraceFile file, std::string source)
    : source_(std::move(source)),
      title_(without_controls(std::move(file.title))),
      world_size_(file.world_size),
      gpus_per_node_(file.gpus_per_node),
      clock_(file.clock) {
  size_t mended = 0;
  for (RankTrace& trace : file.ranks) {
    trace.label = without_controls(std::move(trace.label));
    for (std::string& name : trace.names) name = without_controls(std::move(name));
    for (Event& event : trace.events) {
      bound_times(event);
      mended += mend_times(event, clock_) ? 1 : 0;
      if (event.array > trace.arrays.size()) event.array = 0;
    }
    events_ += trace.events.size();
    const size_t at = slot(trace);
    if (traces_[at].events.empty() && traces_[at].names.empty()) {
      traces_[at] = std::move(trace);
    } else {  // a second entry for the same rank
      events_ -= trace.events.size();
      add(trace);
    }
  }
  full_ = dropped() > 0;
  if (mended > 0)
    warning_ = strprintf("the file is damaged: %zu event%s with an end before the beginning, or an impossible time, ",
                         mended, mended == 1 ? "" : "s") +
               (mended == 1 ? "which is" : "which are") +
               " shown without a duration (ranklab trace validate lists them)";
  if (const std::string text = broke_off_text(traces_); !text.empty()) warning_ = text;
  lay_out();
}

size_t TraceStore::slot(const RankTrace& trace) {
  const auto at = std::lower_bound(ranks_.begin(), ranks_.end(), trace.global_rank,
                                   [](const RankRows& rows, int rank) { return rows.global_rank < rank; });
  const auto index = static_cast<size_t>(at - ranks_.begin());
  if (at == ranks_.end() || at->global_rank != trace.global_rank) {
    RankRows rows;
    rows.global_rank = trace.global_rank;
    rows.label = row_label(trace);
    ranks_.insert(at, std::move(rows));
    RankTrace empty;
    empty.global_rank = trace.global_rank;
    traces_.insert(traces_.begin() + static_cast<std::ptrdiff_t>(index), std::move(empty));
  }
  return index;
}

void TraceStore::lay_out() {
  ++revision_;
  steps_.clear();
  range_ = {};
  bool any = false;
  for (size_t r = 0; r < traces_.size(); ++r) {
    lay_out_rank(traces_[r], clock_, ranks_[r]);
    ranks_[r].label = row_label(traces_[r]);
    for (const Event& event : traces_[r].events) {
      if (!any) range_ = {ranklab::begin_ns(event, clock_), ranklab::begin_ns(event, clock_)};
      any = true;
      note(event);
    }
  }
}

void TraceStore::note(const Event& event) {
  int64_t begin = ranklab::begin_ns(event, clock_);
  const int64_t end = std::max(begin, ranklab::end_ns(event, clock_));
  if (clock_ == TraceClock::kVirtual && event.virtual_posted_ns != kNoTime)
    begin = std::min(begin, event.virtual_posted_ns);
  range_.begin_ns = std::min(range_.begin_ns, begin);
  range_.end_ns = std::max(range_.end_ns, end);
  if (event.step < 0 || !is_slice(event)) return;
  auto at = steps_.end();
  if (steps_.empty() || steps_.back().step != event.step) {
    at = std::lower_bound(steps_.begin(), steps_.end(), event.step,
                          [](const StepRange& step, int number) { return step.step < number; });
    if (at == steps_.end() || at->step != event.step) at = steps_.insert(at, {.step = event.step});
  } else {
    --at;
  }
  at->add(event.kind, {begin, end});
}

// A phase encloses its step's work and whatever the step waits for. A collective that outlasts it (an outer update that
// the next steps hide, a gather for the next forward) takes none of its time.
void StepRange::add(EventKind kind, TimeRange event) {
  const auto widen = [&](TimeRange& known) {
    known = {std::min(known.begin_ns, event.begin_ns), std::max(known.end_ns, event.end_ns)};
  };
  if (kind != EventKind::kCollective) widen(work);
  has_phases |= kind == EventKind::kPhase;
  if (has_phases)
    range = work;
  else
    widen(range);
}

int64_t TraceStore::dropped() const {
  int64_t sum = 0;
  for (const RankTrace& trace : traces_) sum += std::clamp<int64_t>(trace.dropped, 0, kTimeLimit);
  return sum;
}

bool TraceStore::has_clock(TraceClock clock) const {
  for (const RankTrace& trace : traces_) {
    for (const Event& event : trace.events) {
      if (ranklab::begin_ns(event, clock) != 0 || ranklab::end_ns(event, clock) != 0) return true;
    }
  }
  return clock == clock_;
}

void TraceStore::set_clock(TraceClock clock) {
  RANKLAB_CHECK(has_clock(clock), ErrorKind::kInvalidArgument, .where = "trace " + source_,
                .what = "the trace does not have this clock", .got = clock == TraceClock::kVirtual ? "virtual" : "wall",
                .want = "the other one", .fix = "use the other clock");
  clock_ = clock;
  lay_out();
}

std::optional<size_t> TraceStore::index_of_rank(int global_rank) const {
  const auto at = std::lower_bound(ranks_.begin(), ranks_.end(), global_rank,
                                   [](const RankRows& rows, int rank) { return rows.global_rank < rank; });
  if (at == ranks_.end() || at->global_rank != global_rank) return std::nullopt;
  return static_cast<size_t>(at - ranks_.begin());
}

std::string TraceStore::text(EventRef ref) const {
  return block_text(event(ref), name(ref), ranks_[ref.rank_index].several_stages);
}

std::vector<TimeRange> TraceStore::lost(size_t rank_index) const {
  const std::vector<Event>& events = traces_[rank_index].events;
  // A call may end long after the events recorded next to it; the rank's own work ends when it is recorded.
  const auto is_work = [](const Event& event) { return is_slice(event) && event.kind != EventKind::kCollective; };
  std::vector<TimeRange> out;
  for (const uint32_t first : ranks_[rank_index].lost_before) {
    const auto known = events.begin() + first;
    const auto before = std::find_if(std::make_reverse_iterator(known), events.rend(), is_work);
    const auto after = std::find_if(known, events.end(), is_work);
    const TimeRange range{before == events.rend() ? range_.begin_ns : ranklab::end_ns(*before, clock_),
                          after == events.end() ? range_.end_ns : ranklab::end_ns(*after, clock_)};
    if (!out.empty() && range.begin_ns <= out.back().end_ns)
      out.back().end_ns = std::max(out.back().end_ns, range.end_ns);
    else if (!range.empty())
      out.push_back(range);
  }
  return out;
}

std::optional<Window> TraceStore::step_window(int step) const {
  const auto at = std::lower_bound(steps_.begin(), steps_.end(), step,
                                   [](const StepRange& range, int number) { return range.step < number; });
  if (at == steps_.end() || at->step != step) return std::nullopt;
  return Window{at->range, step};
}

int TraceStore::step_at(int64_t time_ns) const {
  int step = -1;
  for (const StepRange& range : steps_) {
    if (range.range.begin_ns > time_ns) break;
    step = range.step;
  }
  return step;
}

void TraceStore::append(const RankTrace& more) {
  const size_t at = slot(more);
  const RankTrace& trace = traces_[at];
  if (more.dropped > trace.dropped) ranks_[at].lost_before.push_back(static_cast<uint32_t>(trace.events.size()));
  add(more);
}

void TraceStore::add(const RankTrace& more) {
  ++revision_;
  const size_t at = slot(more);
  RankTrace& trace = traces_[at];
  if (!more.label.empty()) trace.label = more.label;
  if (!more.groups.empty()) trace.groups = more.groups;
  trace.dropped = std::max(trace.dropped, more.dropped);
  ranks_[at].label = row_label(trace);
  std::vector<uint32_t> names;
  for (const std::string& name : more.names) {
    const auto known = std::find(trace.names.begin(), trace.names.end(), name);
    names.push_back(static_cast<uint32_t>(known - trace.names.begin()));
    if (known == trace.names.end()) trace.names.push_back(name);
  }
  for (const Event& event : more.events) {
    RANKLAB_CHECK(event.name < names.size(), ErrorKind::kInvalidArgument, .where = "trace store",
                  .what = "an event without a name", .got = "name index " + std::to_string(event.name),
                  .want = "less than " + std::to_string(names.size()));
    trace.events.push_back(event);
    Event& added = trace.events.back();
    added.name = names[event.name];
    added.array = 0;
    if (event.array > 0 && event.array <= more.arrays.size()) {
      trace.arrays.push_back(more.arrays[event.array - 1]);
      added.array = static_cast<uint32_t>(trace.arrays.size());
    }
    bound_times(added);
    insert_event(trace, clock_, static_cast<uint32_t>(trace.events.size() - 1), ranks_[at]);
    if (events_++ == 0) range_ = {ranklab::begin_ns(added, clock_), ranklab::begin_ns(added, clock_)};
    note(added);
  }
}

const MatchedCall* CallIndex::of(EventRef ref) const {
  const uint32_t call = call_of_event[ref.rank_index][ref.event_index];
  return call == kNone ? nullptr : &calls[call];
}

const CallIndex& TraceStore::calls() const {
  if (calls_revision_ == revision_) return calls_;
  calls_revision_ = revision_;
  calls_.calls = match_calls(traces_);
  calls_.call_of_event.resize(traces_.size());
  for (size_t r = 0; r < traces_.size(); ++r)
    calls_.call_of_event[r].assign(traces_[r].events.size(), CallIndex::kNone);
  for (uint32_t i = 0; i < calls_.calls.size(); ++i) {
    for (const EventRef side : calls_.calls[i].sides) calls_.call_of_event[side.rank_index][side.event_index] = i;
  }
  return calls_;
}

std::optional<EventRef> TraceStore::at(size_t rank_index, size_t row, int64_t time_ns) const {
  std::optional<EventRef> found;
  for (const Track& track : ranks_[rank_index].rows[row].tracks) {
    const size_t i = track.first_ending_after(time_ns);
    if (i < track.size() && track.begin_ns[i] <= time_ns) found = EventRef{rank_index, track.event[i]};
  }
  return found;
}

std::optional<EventPlace> TraceStore::place_of(EventRef ref) const {
  const Event& wanted = event(ref);
  if (!is_slice(wanted)) return std::nullopt;
  const int64_t begin = ranklab::begin_ns(wanted, clock_);
  const std::vector<Row>& rows = ranks_[ref.rank_index].rows;
  for (size_t row = 0; row < rows.size(); ++row) {
    if (rows[row].lane < first_lane(wanted)) continue;
    for (size_t depth = 0; depth < rows[row].tracks.size(); ++depth) {
      const Track& track = rows[row].tracks[depth];
      auto at = std::lower_bound(track.begin_ns.begin(), track.begin_ns.end(), begin) - track.begin_ns.begin();
      for (auto i = static_cast<size_t>(at); i < track.size() && track.begin_ns[i] == begin; ++i) {
        if (track.event[i] == ref.event_index) return EventPlace{ref.rank_index, row, depth, i};
      }
    }
  }
  return std::nullopt;
}

std::optional<EventRef> TraceStore::next_on_row(EventRef ref) const {
  const auto place = place_of(ref);
  if (!place) return std::nullopt;
  const Track& track = ranks_[place->rank_index].rows[place->row].tracks[place->depth];
  if (place->position + 1 >= track.size()) return std::nullopt;
  return EventRef{place->rank_index, track.event[place->position + 1]};
}

std::optional<EventRef> TraceStore::previous_on_row(EventRef ref) const {
  const auto place = place_of(ref);
  if (!place || place->position == 0) return std::nullopt;
  const Track& track = ranks_[place->rank_index].rows[place->row].tracks[place->depth];
  return EventRef{place->rank_index, track.event[place->position - 1]};
}

std::optional<EventRef> TraceStore::next_event(int64_t time_ns) const {
  std::optional<EventRef> best;
  int64_t best_ns = std::numeric_limits<int64_t>::max();
  for (size_t r = 0; r < ranks_.size(); ++r) {
    for (const Row& row : ranks_[r].rows) {
      for (const Track& track : row.tracks) {
        const auto at = std::upper_bound(track.begin_ns.begin(), track.begin_ns.end(), time_ns);
        if (at == track.begin_ns.end() || *at >= best_ns) continue;
        best_ns = *at;
        best = EventRef{r, track.event[static_cast<size_t>(at - track.begin_ns.begin())]};
      }
    }
  }
  return best;
}

std::optional<EventRef> TraceStore::previous_event(int64_t time_ns) const {
  std::optional<EventRef> best;
  int64_t best_ns = std::numeric_limits<int64_t>::min();
  for (size_t r = 0; r < ranks_.size(); ++r) {
    for (const Row& row : ranks_[r].rows) {
      for (const Track& track : row.tracks) {
        const auto at = std::lower_bound(track.begin_ns.begin(), track.begin_ns.end(), time_ns);
        if (at == track.begin_ns.begin() || *(at - 1) <= best_ns) continue;
        best_ns = *(at - 1);
        best = EventRef{r, track.event[static_cast<size_t>(at - 1 - track.begin_ns.begin())]};
      }
    }
  }
  return best;
}

}  // namespace ranklab::viz
