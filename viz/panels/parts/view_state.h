// The view: the cursor, the selection, the visible ranks, the visible time, playback. All panels follow it. Plain data
// without ImGui. Thread rule: the window's thread.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "viz/model/store/trace_store.h"

namespace ranklab::viz {

// A point in time; `event` is the one selected by a step forward or back or by a click, if any.
struct Cursor {
  int64_t time_ns = 0;
  std::optional<EventRef> event;
};

// A rectangle of the timeline: a range of time over some ranks.
struct Area {
  TimeRange range;
  size_t first_rank = 0;  // rank indices, both included
  size_t last_rank = 0;

  bool operator==(const Area&) const = default;
};

// The part of the time axis that is drawn. Doubles, so that zooming about a point returns to where it was.
struct Camera {
  double begin_ns = 0;
  double end_ns = 1;

  double length_ns() const { return end_ns - begin_ns; }
  TimeRange range() const { return {static_cast<int64_t>(begin_ns), static_cast<int64_t>(end_ns) + 1}; }
  void show(TimeRange range, double margin = 0) {
    const double length = static_cast<double>(std::max<int64_t>(range.length_ns(), 1));
    begin_ns = static_cast<double>(range.begin_ns) - margin * length;
    end_ns = static_cast<double>(range.begin_ns) + length * (1 + margin);
  }
  // factor < 1 zooms in; `at_ns` stays in place. Limits keep the axis meaningful: from 10 ns to 4 times the trace.
  void zoom(double factor, double at_ns, TimeRange whole) {
    const double longest = 4 * static_cast<double>(std::max<int64_t>(whole.length_ns(), 100));
    factor = std::clamp(length_ns() * factor, 10.0, longest) / length_ns();
    begin_ns = at_ns + (begin_ns - at_ns) * factor;
    end_ns = at_ns + (end_ns - at_ns) * factor;
  }
  void pan(double share) {
    const double by = share * length_ns();
    begin_ns += by;
    end_ns += by;
  }
};

enum class PlayState : uint8_t { kPaused, kPlaying, kFollowing };
enum class LoopMode : uint8_t { kOff, kSelection, kAll };

struct Playback {
  PlayState state = PlayState::kPaused;
  LoopMode loop = LoopMode::kOff;
  float speed = 1;  // 0.1 to 100; 1 plays a step (or a trace without steps) in ten seconds
};

// The scope of tables.
enum class Scope : uint8_t { kTrace, kStep, kArea };

// Which ranks are shown: a single one, those at one coordinate of the mesh, or all.
struct RankFilter {
  int only_rank = -1;  // global rank; -1: not used
  std::vector<std::pair<Axis, int>> coordinates;

  bool active() const { return only_rank >= 0 || !coordinates.empty(); }
};

}  // namespace ranklab::viz
