// An event at the current time of a rank, in both clocks: an instant, or a counter whose value the caller fills in.
// Thread rule: its rank's thread.
#pragma once
#include <string_view>

#include "core/comm/rank_context.h"

namespace ranklab {

inline Event event_now(RankContext& rank, EventKind kind, std::string_view name) {
  Event event;
  event.kind = kind;
  event.name = rank.tracer().intern(name);
  event.virtual_begin_ns = event.virtual_end_ns = rank.clock().now_ns();
  event.wall_begin_ns = event.wall_end_ns = wall_now_ns();
  return event;
}

}  // namespace ranklab
