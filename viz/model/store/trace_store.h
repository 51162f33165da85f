// The data of a viewer: the events of all ranks, laid out in searchable rows. A rank has the rows that
// core/trace/lanes.h defines (phase, compute, one per axis). A row has one track per nesting depth; the events of a
// track never overlap and are sorted by time, so every lookup is a binary search. Rows are laid out for one of the two
// clocks at a time. A live trace grows by append(). Impossible times and bytes (in a damaged file) are clamped to
// kTimeLimit and kBytesLimit, so that sums of them cannot overflow. Cost: O(n log n) to build; an append costs its own
// events and those at the ends of the rows among which they are sorted. About 230 bytes per event. Thread rule: one
// thread, also for reading (calls() caches its result).
#pragma once
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/trace/chrome_reader.h"
#include "core/trace/event.h"
#include "core/trace/lanes.h"
#include "core/trace/matching.h"
#include "viz/model/svg/palette.h"

namespace ranklab::viz {

constexpr int64_t kTimeLimit = int64_t{1} << 52;   // ns, 52 days
constexpr int64_t kBytesLimit = int64_t{1} << 46;  // per event

struct TimeRange {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;

  bool operator==(const TimeRange&) const = default;
  int64_t length_ns() const { return end_ns - begin_ns; }
  bool empty() const { return end_ns <= begin_ns; }
};

// The scope of a table: a range of time and, if step >= 0, only the events of that step.
struct Window {
  TimeRange range;
  int step = -1;

  bool operator==(const Window&) const = default;
  // Whether an event counts: with a step, if it belongs to the step; without one, if it overlaps the range.
  bool has(const Event& event, TraceClock clock) const;
};

// Disjoint slices at one depth of one row, sorted by begin. Four arrays of equal length.
struct Track {
  std::vector<int64_t> begin_ns;
  std::vector<int64_t> end_ns;
  std::vector<uint32_t> event;  // index into RankTrace::events
  std::vector<Paint> paint;
  // Sums of painted time before event i x kStride, used by level_of_detail.h.
  static constexpr size_t kStride = 16;
  std::vector<std::array<int64_t, kPaints>> painted_ns;

  size_t size() const { return event.size(); }
  // The first event that ends after `time`; size() if there is none.
  size_t first_ending_after(int64_t time_ns) const;
};

struct Row {
  int lane = 0;               // thread id of core/trace/lanes.h
  std::string label;          // "phase", "compute", "tp", "dp #2"
  std::vector<Track> tracks;  // [depth]; at least one
};

// The layout of one rank.
struct RankRows {
  int global_rank = 0;
  std::string label;                  // "r3 dp0 tp1 pp1"
  std::vector<Row> rows;              // by lane; "phase" only if there are phases
  std::vector<uint32_t> instants;     // by time
  std::vector<uint32_t> counters;     // by time
  std::vector<uint32_t> lost_before;  // events, ascending: what was recorded just before each was lost
  bool several_stages = false;        // its actions belong to more than one stage, so block names include the stage
  int first_stage = -1;
};

struct StepRange {
  static constexpr TimeRange kNothing = {std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()};
  int step = 0;
  // Over all ranks. Of steps with phases without collectives, which may run on beside the next step.
  TimeRange range = kNothing;
  TimeRange work = kNothing;  // over what is not a collective
  bool has_phases = false;

  void add(EventKind kind, TimeRange event);
};

// The place where an event is drawn.
struct EventPlace {
  size_t rank_index = 0;
  size_t row = 0;
  size_t depth = 0;
  size_t position = 0;  // in the track
};

// The calls of the trace with all their members' events (core/trace/matching.h), and the call of each event.
struct CallIndex {
  static constexpr uint32_t kNone = static_cast<uint32_t>(-1);
  std::vector<MatchedCall> calls;
  std::vector<std::vector<uint32_t>> call_of_event;  // [rank][event] -> index into calls, or kNone
  const MatchedCall* of(EventRef ref) const;
};

class TraceStore {
 public:
  TraceStore() = default;
  // `source`: where the trace came from, for titles ("runs/last/trace.json.gz").
  explicit TraceStore(TraceFile file, std::string source = {});

  const std::string& source() const { return source_; }
  // Model and layout; "" if the trace does not name them.
  const std::string& title() const { return title_; }
  // "broken at byte 1234: ..." if only part of the file could be read, else "".
  const std::string& warning() const { return warning_; }
  void set_warning(std::string warning) { warning_ = std::move(warning); }
  // Whether ranks may have done more than was read: in a live run, in a truncated file, or in one whose recorders were
  // full. Then it is unknown what a rank did after its last event; otherwise it was done.
  bool partial() const { return live_ || full_ || !warning_.empty(); }
  void set_live(bool live) { revision_ += static_cast<uint64_t>(std::exchange(live_, live) != live); }
  // The time unit of a drawn schedule, whose times are multiples of it, so format_time() gives "117 units". 0: times
  // are nanoseconds.
  int64_t unit_ns() const { return unit_ns_; }
  void set_unit_ns(int64_t unit_ns) { unit_ns_ = unit_ns; }
  // Grows with every change: anything computed from an older revision is stale.
  uint64_t revision() const { return revision_; }

  bool empty() const { return events_ == 0; }
  size_t num_events() const { return events_; }
  int64_t dropped() const;  // number of events that ranks could not store
  int world_size() const { return world_size_; }
  // GPUs that share fast links: from the trace, or as set by the user; 0: unknown.
  int gpus_per_node() const { return gpus_per_node_; }
  void set_gpus_per_node(int gpus) { gpus_per_node_ = gpus; }

  TraceClock clock() const { return clock_; }
  bool has_clock(TraceClock clock) const;
  // Recomputes the rows. REQUIRES: has_clock(clock).
  void set_clock(TraceClock clock);

  // Ascending by global rank; traces()[i] and ranks()[i] are the same rank.
  std::span<const RankRows> ranks() const { return ranks_; }
  const RankRows& rank(size_t rank_index) const { return ranks_[rank_index]; }
  std::span<const RankTrace> traces() const { return traces_; }
  const RankTrace& trace(size_t rank_index) const { return traces_[rank_index]; }
  std::optional<size_t> index_of_rank(int global_rank) const;
  // The array of numbers of an event (Event::array); empty if it has none.
  std::span<const double> array(size_t rank_index, const Event& event) const {
    const std::vector<std::vector<double>>& arrays = traces_[rank_index].arrays;
    return event.array == 0 ? std::span<const double>() : std::span<const double>(arrays[event.array - 1]);
  }
  // The times of a rank in which events are missing because a viewer joined the live run too late, or was too slow:
  // from the last work that it has (else from the trace's begin) to the end of the first work after the gap; parts of
  // that one may also be missing. Disjoint, sorted by begin.
  std::vector<TimeRange> lost(size_t rank_index) const;
  const Event& event(EventRef ref) const { return traces_[ref.rank_index].events[ref.event_index]; }
  std::string_view name(EventRef ref) const { return traces_[ref.rank_index].names[event(ref).name]; }
  std::string text(EventRef ref) const;  // as on its block: "F7"
  int64_t begin_ns(EventRef ref) const { return ranklab::begin_ns(event(ref), clock_); }
  int64_t end_ns(EventRef ref) const { return ranklab::end_ns(event(ref), clock_); }

  // From the first begin (or posting) to the last end.
  TimeRange range() const { return range_; }
  Window whole() const { return {range_, -1}; }
  std::span<const StepRange> steps() const { return steps_; }  // ascending
  // The window of a step; nothing if the trace has no such step.
  std::optional<Window> step_window(int step) const;
  // The current step at a time (the last one begun); -1 before the first.
  int step_at(int64_t time_ns) const;

  // Computed on the first call after a change: O(events).
  const CallIndex& calls() const;

  // Adds further events of a rank, as a recorder or a live feed delivers them. `more.names` belong to these events;
  // groups and label replace the rank's if they are not empty; dropped counts are the new totals, and as many events as
  // they grew by were lost just before these events. An unknown rank is added.
  void append(const RankTrace& more);

  // The deepest slice of a row at a time.
  std::optional<EventRef> at(size_t rank_index, size_t row, int64_t time_ns) const;
  std::optional<EventPlace> place_of(EventRef ref) const;  // nothing for instants and counters
  // The next or previous slice of the same track.
  std::optional<EventRef> next_on_row(EventRef ref) const;
  std::optional<EventRef> previous_on_row(EventRef ref) const;
  // The next (or previous) slice on any rank, ordered by begin: "one event" in the transport bar. Equal begins: by
  // rank, then row.
  std::optional<EventRef> next_event(int64_t time_ns) const;      // begins after the time
  std::optional<EventRef> previous_event(int64_t time_ns) const;  // begins before the time

 private:
  size_t slot(const RankTrace& trace);
  void add(const RankTrace& more);
  void lay_out();
  void note(const Event& event);

  std::string source_, title_;
  std::string warning_;
  bool live_ = false;
  bool full_ = false;  // a recorder of the file was full
  int64_t unit_ns_ = 0;
  uint64_t revision_ = 1;
  size_t events_ = 0;
  int world_size_ = 0;
  int gpus_per_node_ = 0;
  TraceClock clock_ = TraceClock::kVirtual;
  std::vector<RankTrace> traces_;
  std::vector<RankRows> ranks_;
  std::vector<StepRange> steps_;
  TimeRange range_;
  mutable CallIndex calls_;
  mutable uint64_t calls_revision_ = 0;  // the store's revision when calls_ was computed
};

}  // namespace ranklab::viz
