#include "core/live/stepper_state.h"

#include <algorithm>

#include "core/base/text.h"

namespace ranklab {
namespace {

std::string place(const Boundary& at) {
  std::string text;
  if (at.microbatch >= 0) text += " mb " + std::to_string(at.microbatch);
  if (at.stage >= 0) text += " stage " + std::to_string(at.stage);
  return text;
}

std::string call(const Boundary& at) {
  std::string text = at.name;
  if (at.peer >= 0)
    text += (at.verb == Verb::kRecv || at.verb == Verb::kBroadcast ? " from " : " to ") + std::to_string(at.peer);
  return text + " on " + std::string(name(at.axis)) + " [" + join(std::span<const int>(at.group), " ") + "]";
}

}  // namespace

std::string counter_text(std::string_view counter, double value) {
  if (counter == "memory" || counter.starts_with("memory/")) return human_bytes(value);
  return counter == "wait" ? human_ns(value) : strprintf("%g", value);
}

std::string to_text(const Boundary& at) {
  switch (at.kind) {
    case BoundaryKind::kStepBegin:
      return "step " + std::to_string(at.step) + " begins";
    case BoundaryKind::kStepEnd:
      return "step " + std::to_string(at.step) + " ends";
    case BoundaryKind::kSpan:
      return at.name + place(at);
    case BoundaryKind::kPost:
      return call(at) + (at.types.known() ? ": " + at.types.text() : "");
    case BoundaryKind::kWait:
      return "wait for " + call(at);
    case BoundaryKind::kValue:
      return at.name + " = " + counter_text(at.name, at.value);
    case BoundaryKind::kCount:
      break;
  }
  return {};
}

int next_rank(const StepperState& state) {
  const RankState* best = nullptr;
  for (const RankState& rank : state.ranks) {
    if (rank.activity == RankActivity::kParked && (best == nullptr || rank.virtual_ns < best->virtual_ns)) best = &rank;
  }
  return best != nullptr ? best->global_rank : -1;
}

int current_step(const StepperState& state) {
  int step = -1;
  for (const RankState& rank : state.ranks) {
    if (rank.activity == RankActivity::kRunning || rank.activity == RankActivity::kDone) continue;
    step = step < 0 ? rank.at.step : std::min(step, rank.at.step);
  }
  return step;
}

}  // namespace ranklab
