#include "cli/debug/debug_text.h"

#include <algorithm>

#include "core/base/counted.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

std::string time_text(int64_t ns) { return human_ns(static_cast<double>(ns)); }

std::string place_text(const Boundary& at) {
  const bool names_itself = at.kind == BoundaryKind::kStepBegin || at.kind == BoundaryKind::kStepEnd;
  return (at.kind == BoundaryKind::kValue ? "has " : names_itself ? "is where " : "is before ") + to_text(at);
}

std::string hit_text(const StepperState& state, const BreakpointHit& hit) {
  const auto found = std::find_if(state.breakpoints.begin(), state.breakpoints.end(),
                                  [&](const Breakpoint& b) { return b.id == hit.breakpoint; });
  std::string text = "breakpoint " + std::to_string(hit.breakpoint);
  if (found != state.breakpoints.end()) text += ", " + to_text(*found);
  return text + ": rank " + std::to_string(hit.global_rank) + " " + place_text(hit.at) + ", step " +
         std::to_string(hit.at.step) + ", " + time_text(hit.at.virtual_ns) + "\n";
}

int count(const StepperState& state, RankActivity activity) {
  return static_cast<int>(std::count_if(state.ranks.begin(), state.ranks.end(),
                                        [&](const RankState& rank) { return rank.activity == activity; }));
}

std::string spaced_shape_text(const std::vector<int64_t>& shape) {
  return "[" + join(std::span<const int64_t>(shape), " ") + "]";
}

std::string label(const RunPlan& plan, int rank) { return "r" + std::to_string(rank) + " " + plan.mesh.label(rank); }

size_t label_width(const RunPlan& plan) {
  size_t width = 0;
  for (int rank = 0; rank < plan.mesh.world_size(); ++rank) width = std::max(width, label(plan, rank).size());
  return width;
}

}  // namespace

std::string hash_text(uint64_t hash) { return strprintf("%016llx", static_cast<unsigned long long>(hash)); }

std::string pause_text(const StepperState& state) {
  std::string text;
  for (const BreakpointHit& hit : state.hits) text += hit_text(state, hit);
  const int next = next_rank(state);
  text += strprintf("step %d, %d parked, %d waiting", current_step(state), count(state, RankActivity::kParked),
                    count(state, RankActivity::kBlocked));
  if (const int done = count(state, RankActivity::kDone); done > 0) text += strprintf(", %d done", done);
  if (next >= 0) {
    const RankState& rank = state.ranks[static_cast<size_t>(next)];
    text += strprintf("; next is rank %d: %s, %s", next, to_text(rank.at).c_str(), time_text(rank.virtual_ns).c_str());
  }
  return text + "; hash " + hash_text(state.hash) + "\n";
}

std::string move_text(const RankState& before, const RankState& after) {
  std::string text = "rank " + std::to_string(after.global_rank) + " ";
  const int64_t passed = after.events - before.events;
  text += passed > 1 ? "passed " + std::to_string(passed) + " events" : "passed " + to_text(before.at);
  if (after.activity == RankActivity::kParked) text += "; it " + place_text(after.at);
  if (after.activity == RankActivity::kBlocked) text += "; it waits in " + after.inside;
  if (after.activity == RankActivity::kBlocked) text += " for rank " + join(std::span<const int>(after.waits_for), " ");
  if (after.activity == RankActivity::kDone) text += "; it is done";
  return text + ", " + time_text(after.virtual_ns) + "\n";
}

std::string where_text(const StepperState& state, const RunPlan& plan) {
  const auto width = static_cast<int>(label_width(plan));
  std::string text;
  for (const RankState& rank : state.ranks) {
    text += strprintf("%-*s  %-7s  step %d  %10s  ", width, label(plan, rank.global_rank).c_str(),
                      rank.activity == RankActivity::kBlocked ? "waiting" : std::string(name(rank.activity)).c_str(),
                      rank.at.step, time_text(rank.virtual_ns).c_str());
    if (rank.activity == RankActivity::kParked) text += "before " + to_text(rank.at);
    if (rank.activity == RankActivity::kBlocked)
      text += "in " + rank.inside + " for rank " + join(std::span<const int>(rank.waits_for), " ");
    text += "\n";
  }
  return text;
}

std::string ranks_text(const RunPlan& plan) {
  const auto width = static_cast<int>(label_width(plan));
  std::string text;
  for (int rank = 0; rank < plan.mesh.world_size(); ++rank) {
    text += strprintf("%-*s ", width, label(plan, rank).c_str());
    const std::vector<int> stages = plan.schedule.stages_of(plan.mesh.coordinate(Axis::kPp, rank));
    text += "  stage " + join(std::span<const int>(stages), " ");
    for (const Axis axis : {Axis::kTp, Axis::kCp, Axis::kDp, Axis::kPp, Axis::kEp, Axis::kEtp}) {
      if (plan.mesh.size(axis) > 1) text += "  " + plan.mesh.group(axis, rank).label();
    }
    text += "\n";
  }
  return text;
}

std::string breakpoints_text(const StepperState& state) {
  if (state.breakpoints.empty()) return "no breakpoints; see: help break\n";
  std::string text;
  for (const Breakpoint& b : state.breakpoints)
    text += strprintf("%-3d %-40s stopped %s\n", b.id, to_text(b).c_str(), counted(b.hits, "time").c_str());
  return text;
}

std::string tensor_text(const TensorSummary& tensor, int global_rank) {
  const std::string title = tensor.name + " on rank " + std::to_string(global_rank) + ": ";
  if (!tensor.defined)
    return title + "no gradient now; it is whole where the optimizer begins (break optimizer rank=" +
           std::to_string(global_rank) + ")\n";
  std::string text = title + tensor.dtype + " " + spaced_shape_text(tensor.shape);
  if (tensor.global_shape != tensor.shape) text += " of " + spaced_shape_text(tensor.global_shape);
  if (!tensor.types.empty()) text += ", " + tensor.types;
  text += strprintf("\n  min %.6g  max %.6g  mean %.6g  norm %.6g  not finite %lld\n  first", tensor.min, tensor.max,
                    tensor.mean, tensor.norm, static_cast<long long>(tensor.not_finite));
  for (const double value : tensor.first) text += strprintf(" %.6g", value);
  return text + "\n";
}

std::string events_text(const std::vector<RecordedEvent>& events, size_t limit) {
  if (events.empty()) return "nothing is recorded yet\n";
  std::string text;
  for (size_t i = events.size() - std::min(limit, events.size()); i < events.size(); ++i) {
    const auto& [name_of, e] = events[i];
    std::string what = name_of;
    if (e.kind == EventKind::kCollective) what += " " + std::string(name(e.axis));
    if (e.kind == EventKind::kCounter) what += " = " + counter_text(name_of, e.value);
    if (e.kind == EventKind::kCompute && e.microbatch >= 0) what += " mb " + std::to_string(e.microbatch);
    if (e.kind == EventKind::kCompute && e.stage >= 0) what += " stage " + std::to_string(e.stage);
    text += strprintf("step %d  %10s .. %-10s  %s", e.step, time_text(e.virtual_begin_ns).c_str(),
                      time_text(e.virtual_end_ns).c_str(), what.c_str());
    if (e.kind == EventKind::kCollective) text += ", " + human_bytes(static_cast<double>(e.logical_bytes));
    if (e.types.known()) text += ", " + e.types.text();
    if (e.virtual_peer_wait_ns > 0) text += ", waited " + time_text(e.virtual_peer_wait_ns);
    text += "\n";
  }
  return text;
}

}  // namespace ranklab
