// A span on a rank's timeline in virtual and wall time, from construction until the end of the scope. A stepper may
// pause the rank before a compute span. Thread rule: its rank's thread.
#pragma once
#include "core/comm/rank_context.h"
#include "core/live/stepper_state.h"

namespace ranklab {

class TraceSpan {
 public:
  TraceSpan(RankContext& ctx, EventKind kind, const char* name, int stage = -1) : ctx_(ctx) {
    if (kind == EventKind::kCompute && ctx_.tracer().has_stepper())
      ctx_.tracer().at_boundary(
          {.kind = BoundaryKind::kSpan, .name = name, .stage = stage, .virtual_ns = ctx_.clock().now_ns()});
    if (!ctx_.tracer().enabled()) return;
    event_.kind = kind;
    event_.name = ctx_.tracer().intern(name);
    event_.stage = stage;
    event_.virtual_begin_ns = ctx_.clock().now_ns();
    event_.wall_begin_ns = wall_now_ns();
  }
  ~TraceSpan() {
    if (!ctx_.tracer().enabled()) return;
    event_.virtual_end_ns = ctx_.clock().now_ns();
    event_.wall_end_ns = wall_now_ns();
    ctx_.tracer().record(event_);
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  RankContext& ctx_;
  Event event_;
};

}  // namespace ranklab
