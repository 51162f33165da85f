// How detailed a trace is. Each level includes the one before it. Torch-free. Thread rule: constants.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "core/trace/event.h"

namespace ranklab {

enum class TraceLevel : uint8_t {
  kStep,    // phases of a step, instants and counters
  kAction,  // actions of the schedule, collectives
  kModule,  // modules inside the actions
  kKernel,  // kernels inside the modules
};
constexpr std::array<std::string_view, 4> kTraceLevelNames = {"step", "action", "module", "kernel"};

// REQUIRES: one of the names.
constexpr TraceLevel trace_level_named(std::string_view name) {
  size_t i = 0;
  while (i + 1 < kTraceLevelNames.size() && kTraceLevelNames[i] != name) ++i;
  return static_cast<TraceLevel>(i);
}

// The lowest level that includes events of this kind.
constexpr TraceLevel level_of(EventKind kind) {
  switch (kind) {
    case EventKind::kCompute:
    case EventKind::kCollective:
      return TraceLevel::kAction;
    case EventKind::kModule:
    case EventKind::kAttention:
      return TraceLevel::kModule;
    case EventKind::kKernel:
      return TraceLevel::kKernel;
    case EventKind::kPhase:
    case EventKind::kInstant:
    case EventKind::kCounter:
    case EventKind::kCount:
      break;
  }
  return TraceLevel::kStep;
}

// Whether a rank's trace has phases but nothing inside them, so that it is unknown what the rank computed, waited for
// and sent.
inline bool has_phases_only(const RankTrace& trace) {
  bool any = false;
  for (const Event& event : trace.events) {
    any = any || event.kind == EventKind::kPhase;
    if (level_of(event.kind) > TraceLevel::kStep) return false;
  }
  return any;
}

}  // namespace ranklab
