// The mark of a step that broke off: a rank's last event where the run failed. What the rank would have done after it
// is not known. Thread rule: constants.
#pragma once
#include <algorithm>
#include <string_view>

#include "core/trace/event.h"

namespace ranklab {

constexpr std::string_view kFailedEvent = "failed";

// The step that a rank's trace broke off in; -1: none.
inline int failed_step(const RankTrace& trace) {
  const auto marks = [&](const Event& event) {
    return event.kind == EventKind::kInstant && event.name < trace.names.size() &&
           trace.names[event.name] == kFailedEvent;
  };
  const auto mark = std::find_if(trace.events.begin(), trace.events.end(), marks);
  return mark == trace.events.end() ? -1 : mark->step;
}

}  // namespace ranklab
