// Time breakdown of each rank: working, waiting for bytes, or idle, and why. On the virtual clock the recorder knows
// the time and length of every stall, so a rank works whenever it is not stalled; its bubbles are the stalls for a
// peer, and the time before its first work and after its last. On the wall clock a rank works inside its compute spans;
// a gap that a collective covers is attributed to that collective, other gaps to the host. For each rank, total = busy
// + exposed + bubble. The total excludes times that are not known: in a partial trace the time after the rank's last
// event, in a live run the times whose events the viewer lost, in a trace that only has phases all of it. Two published
// ratios: bubble of total (idle / makespan: (p-1)/(m+p-1) for 1F1B) and bubble of ideal (idle / busy: (p-1)/m). Cost:
// O(n log n). Thread rule: pure.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "viz/model/store/trace_store.h"

namespace ranklab::viz {

constexpr size_t kNoEvent = static_cast<size_t>(-1);

struct IdleInterval {
  TimeRange range;
  BubbleCause cause = BubbleCause::kHost;
  size_t event = kNoEvent;  // index among this rank's events: the call in which it was stalled
  int waits_for_rank = -1;  // global rank; -1: it waits for no particular rank
  std::string waits_for;    // what that rank was doing: "F7"; "": not known
};

struct TimeSplit {
  int64_t total_ns = 0;
  int64_t busy_ns = 0;
  int64_t exposed_ns = 0;
  int64_t bubble_ns = 0;
  std::array<int64_t, kBubbleCauses> by_cause_ns{};

  double busy_share() const;
  double exposed_share() const;
  double bubble_of_total() const;
  double bubble_of_ideal() const;  // 0 if the rank did nothing
};

// Busy, bubble of total, bubble of ideal, and exposed as percentages; each is "-" if none of the time was recorded.
std::array<std::string, 4> share_texts(const TimeSplit& time);

struct RankBubbles {
  int global_rank = 0;
  TimeSplit time;
  std::vector<IdleInterval> idle;  // by time, disjoint
  // Not included in `time`:
  TimeRange unrecorded;         // the end of the window, in a partial trace
  std::vector<TimeRange> lost;  // TraceStore::lost() in the window; the whole window in a trace of phases
};

struct BubbleReport {
  TimeRange range;
  std::vector<RankBubbles> ranks;  // in the order of TraceStore::ranks()
  TimeSplit all;                   // sums over ranks: its shares are the means
};

BubbleReport find_bubbles(const TraceStore& store, const Window& window);
// Why a trace that only has phases has no times and no calls; "" for other traces.
std::string_view why_phases_only(const TraceStore& store);
// "waits for r2 F7 (dependency)": for tooltips and text.
std::string describe(const IdleInterval& idle);

// The fraction of ranks that are idle, in `columns` equal parts of the range, for the heat strip of the scrubber.
std::vector<float> idle_strip(const BubbleReport& report, TimeRange range, int columns);

}  // namespace ranklab::viz
