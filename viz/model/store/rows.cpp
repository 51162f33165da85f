#include "viz/model/store/rows.h"

#include <algorithm>
#include <numeric>

namespace ranklab::viz {
namespace {

struct Slice {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  uint32_t event = 0;
  Paint paint = Paint::kCompute;
};

Slice slice_of(const RankTrace& trace, TraceClock clock, uint32_t index) {
  const Event& event = trace.events[index];
  const int64_t begin = begin_ns(event, clock);
  return {begin, std::max(begin, end_ns(event, clock)), index, paint_of(event, trace.names[event.name])};
}

// Recomputes the sums of painted time from `position` on.
void sum_from(Track& track, size_t position) {
  const size_t first = position / Track::kStride;
  track.painted_ns.resize(track.size() / Track::kStride + 1);
  for (size_t k = first; k + 1 < track.painted_ns.size(); ++k) {
    track.painted_ns[k + 1] = track.painted_ns[k];
    for (size_t i = k * Track::kStride; i < (k + 1) * Track::kStride; ++i)
      track.painted_ns[k + 1][static_cast<size_t>(track.paint[i])] += track.end_ns[i] - track.begin_ns[i];
  }
}

void push_back(Track& track, const Slice& slice) {
  track.begin_ns.push_back(slice.begin_ns);
  track.end_ns.push_back(slice.end_ns);
  track.event.push_back(slice.event);
  track.paint.push_back(slice.paint);
}

template <typename T>
void insert_at(std::vector<T>& to, size_t position, std::span<const T> values) {
  to.insert(to.begin() + static_cast<std::ptrdiff_t>(position), values.begin(), values.end());
}
template <typename T>
void erase_range(std::vector<T>& from, size_t first, size_t last) {
  from.erase(from.begin() + static_cast<std::ptrdiff_t>(first), from.begin() + static_cast<std::ptrdiff_t>(last));
}

// The slices of a track that overlap [begin, end).
std::pair<size_t, size_t> overlapping(const Track& track, int64_t begin, int64_t end) {
  const size_t first = track.first_ending_after(begin);
  const auto from = track.begin_ns.begin() + static_cast<std::ptrdiff_t>(first);
  const auto last = static_cast<size_t>(std::lower_bound(from, track.begin_ns.end(), end) - track.begin_ns.begin());
  return {first, std::max(first, last)};
}

void add_track(Row& row) {
  row.tracks.emplace_back();
  row.tracks.back().painted_ns.resize(1);
}

// Moves slices inside [begin, end) one track down, because a slice that encloses them has arrived.
void move_down(Row& row, size_t depth, int64_t begin, int64_t end) {
  if (depth >= row.tracks.size()) return;
  const auto [first, last] = overlapping(row.tracks[depth], begin, end);
  if (first == last) return;
  move_down(row, depth + 1, begin, end);
  if (depth + 1 == row.tracks.size()) add_track(row);
  Track& from = row.tracks[depth];
  Track& to = row.tracks[depth + 1];
  const size_t at = to.first_ending_after(begin), count = last - first;
  insert_at(to.begin_ns, at, std::span<const int64_t>(from.begin_ns).subspan(first, count));
  insert_at(to.end_ns, at, std::span<const int64_t>(from.end_ns).subspan(first, count));
  insert_at(to.event, at, std::span<const uint32_t>(from.event).subspan(first, count));
  insert_at(to.paint, at, std::span<const Paint>(from.paint).subspan(first, count));
  erase_range(from.begin_ns, first, last);
  erase_range(from.end_ns, first, last);
  erase_range(from.event, first, last);
  erase_range(from.paint, first, last);
  sum_from(to, at);
  sum_from(from, first);
}

// Whether the slice, which arrives later, must enclose an existing slice with the same extent.
bool encloses_equal(const RankTrace& trace, TraceClock clock, const Slice& slice, const Track& track, size_t at) {
  if (track.begin_ns[at] != slice.begin_ns || track.end_ns[at] != slice.end_ns) return false;
  return precedes_in_layout(trace.events[slice.event], slice.event, trace.events[track.event[at]], track.event[at],
                            clock);
}

// Inserts the slice where it nests. RETURNS: false if it crosses another one, or overlaps one in a lane that must not
// nest.
bool place(const RankTrace& trace, TraceClock clock, Row& row, const Slice& slice, bool nesting) {
  for (size_t depth = 0;; ++depth) {
    if (depth == row.tracks.size()) add_track(row);
    Track& track = row.tracks[depth];
    const auto [first, last] = overlapping(track, slice.begin_ns, slice.end_ns);
    if (first != last) {
      if (!nesting) return false;
      const bool inside = track.begin_ns[first] <= slice.begin_ns && slice.end_ns <= track.end_ns[first];
      if (inside && !encloses_equal(trace, clock, slice, track, first)) continue;
      if (track.begin_ns[first] < slice.begin_ns || track.end_ns[last - 1] > slice.end_ns) return false;
      move_down(row, depth, slice.begin_ns, slice.end_ns);
    }
    Track& into = row.tracks[depth];
    const size_t at = into.first_ending_after(slice.begin_ns);
    insert_at(into.begin_ns, at, std::span<const int64_t>(&slice.begin_ns, 1));
    insert_at(into.end_ns, at, std::span<const int64_t>(&slice.end_ns, 1));
    insert_at(into.event, at, std::span<const uint32_t>(&slice.event, 1));
    insert_at(into.paint, at, std::span<const Paint>(&slice.paint, 1));
    sum_from(into, at);
    return true;
  }
}

Row& row_of(RankRows& rows, int lane) {
  const auto at = std::lower_bound(rows.rows.begin(), rows.rows.end(), lane,
                                   [](const Row& row, int value) { return row.lane < value; });
  if (at != rows.rows.end() && at->lane == lane) return *at;
  Row& row = *rows.rows.insert(at, Row{lane, lane_name(lane), {}});
  add_track(row);
  return row;
}

void add_moment(const RankTrace& trace, TraceClock clock, uint32_t index, std::vector<uint32_t>& to) {
  const int64_t time = begin_ns(trace.events[index], clock);
  size_t at = to.size();
  while (at > 0 && begin_ns(trace.events[to[at - 1]], clock) > time) --at;
  to.insert(to.begin() + static_cast<std::ptrdiff_t>(at), index);
}

void sort_by_time(const RankTrace& trace, TraceClock clock, std::vector<uint32_t>& list) {
  std::stable_sort(list.begin(), list.end(), [&](uint32_t a, uint32_t b) {
    return begin_ns(trace.events[a], clock) < begin_ns(trace.events[b], clock);
  });
}

void note_stage(const Event& event, RankRows& rows) {
  if (event.kind != EventKind::kCompute || event.stage < 0) return;
  if (rows.first_stage >= 0 && event.stage != rows.first_stage) rows.several_stages = true;
  rows.first_stage = event.stage;
}

}  // namespace

void lay_out_rank(const RankTrace& trace, TraceClock clock, RankRows& rows) {
  rows.rows.clear();
  rows.instants.clear();
  rows.counters.clear();
  rows.several_stages = false;
  rows.first_stage = -1;
  const LaneMap lanes = assign_lanes(trace.events, clock);
  std::vector<Slice> slices;
  slices.reserve(trace.events.size());
  for (uint32_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    note_stage(event, rows);
    if (is_slice(event)) slices.push_back(slice_of(trace, clock, i));
    if (event.kind == EventKind::kInstant) rows.instants.push_back(i);
    if (event.kind == EventKind::kCounter) rows.counters.push_back(i);
  }
  sort_by_time(trace, clock, rows.instants);
  sort_by_time(trace, clock, rows.counters);
  std::sort(slices.begin(), slices.end(), [&](const Slice& a, const Slice& b) {
    if (a.begin_ns != b.begin_ns) return a.begin_ns < b.begin_ns;
    if (a.end_ns != b.end_ns) return a.end_ns > b.end_ns;  // the enclosing slice comes first
    return precedes_in_layout(trace.events[a.event], a.event, trace.events[b.event], b.event, clock);
  });
  Row* row = nullptr;
  for (const Slice& slice : slices) {
    const int lane = lanes.lane_of_event[slice.event];
    if (row == nullptr || row->lane != lane) row = &row_of(rows, lane);
    size_t depth = 0;
    while (depth < row->tracks.size() && row->tracks[depth].size() > 0 &&
           row->tracks[depth].end_ns.back() > slice.begin_ns)
      ++depth;
    if (depth == row->tracks.size()) add_track(*row);
    push_back(row->tracks[depth], slice);
  }
  for (Row& each : rows.rows) {
    for (Track& track : each.tracks) sum_from(track, 0);
  }
}

void insert_event(const RankTrace& trace, TraceClock clock, uint32_t index, RankRows& rows) {
  const Event& event = trace.events[index];
  if (event.kind == EventKind::kInstant) return add_moment(trace, clock, index, rows.instants);
  if (event.kind == EventKind::kCounter) return add_moment(trace, clock, index, rows.counters);
  note_stage(event, rows);
  const Slice slice = slice_of(trace, clock, index);
  const bool nesting = event.kind != EventKind::kCollective;
  for (int lane = first_lane(event); !place(trace, clock, row_of(rows, lane), slice, nesting);) ++lane;
}

}  // namespace ranklab::viz
