// The mark of a step that was aborted: the last event of a rank in a run that failed. What the rank would have done
// after it is unknown. It is preceded by the call that did not complete, if the rank was in one. Thread rule: constants
// and pure functions.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>

#include "core/trace/event.h"

namespace ranklab {

constexpr std::string_view kFailedEvent = "failed";
constexpr std::string_view kUnfinishedCall = "not done: ";  // begins the name of an instant

// The step in which a rank's trace was aborted; -1: none.
inline int failed_step(const RankTrace& trace) {
  const auto marks = [&](const Event& event) {
    return event.kind == EventKind::kInstant && event.name < trace.names.size() &&
           trace.names[event.name] == kFailedEvent;
  };
  const auto mark = std::find_if(trace.events.begin(), trace.events.end(), marks);
  return mark == trace.events.end() ? -1 : mark->step;
}

// "all_reduce on tp, fp32, 512 B": the call in which the rank was; "" if it was in none.
inline std::string unfinished_call(const RankTrace& trace) {
  for (auto event = trace.events.rbegin(); event != trace.events.rend(); ++event) {
    if (event->kind != EventKind::kInstant || event->name >= trace.names.size()) continue;
    const std::string& name = trace.names[event->name];
    if (name.starts_with(kUnfinishedCall)) return name.substr(kUnfinishedCall.size());
    if (name != kFailedEvent) return "";
  }
  return "";
}

}  // namespace ranklab
