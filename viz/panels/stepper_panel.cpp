#include "viz/panels/stepper_panel.h"

#include <imgui.h>
#include <misc/cpp/imgui_stdlib.h>

#include <cinttypes>

#include "core/base/error.h"
#include "core/base/text.h"
#include "viz/panels/parts/theme.h"
#include "viz/panels/parts/widgets.h"

namespace ranklab::viz {
namespace {

ImU32 mode_color(StepperMode mode) {
  switch (mode) {
    case StepperMode::kRunning:
      return theme::kGood;
    case StepperMode::kPaused:
      return theme::kCursor;
    default:
      return theme::kDim;
  }
}

ImU32 activity_color(RankActivity activity) {
  switch (activity) {
    case RankActivity::kRunning:
      return theme::kGood;
    case RankActivity::kParked:
      return theme::kCursor;
    case RankActivity::kBlocked:
      return theme::kBad;
    default:
      return theme::kDim;
  }
}

}  // namespace

std::string StepperPanel::nothing_to_show(Workspace& workspace) {
  if (workspace.live && workspace.live->stepper() != nullptr) return {};
  return "Only a live simulated run can be stepped.\n\n./ranklab train --viz   opens a window on a new run\n"
         "./ranklab viz --attach   joins one that was started with --viz-listen\n"
         "./ranklab debug   steps at a prompt, without a window";
}

void StepperPanel::draw(Workspace& workspace) {
  StepperControl& stepper = *workspace.live->stepper();
  const StepperState state = stepper.state();
  commands(stepper, state);
  hits(workspace, state);
  ranks(workspace, stepper, state);
  breakpoints(stepper, state);
}

void StepperPanel::commands(StepperControl& stepper, const StepperState& state) {
  ImGui::AlignTextToFramePadding();
  colored_text(mode_color(state.mode), name(state.mode));
  ImGui::SameLine(0, scaled(12));
  const bool paused = state.mode == StepperMode::kPaused, running = state.mode == StepperMode::kRunning;
  ImGui::BeginDisabled(!running);
  if (ImGui::Button("pause")) stepper.pause();
  ImGui::EndDisabled();
  ImGui::BeginDisabled(!paused);
  ImGui::SameLine();
  if (ImGui::Button("continue")) stepper.resume();
  ImGui::SameLine(0, scaled(12));
  if (ImGui::Button("event")) stepper.step_events(1);
  tooltip("the parked rank with the smallest virtual time advances to its next boundary");
  ImGui::SameLine();
  if (ImGui::Button("microbatch")) stepper.step_microbatch();
  tooltip("every rank advances to its first action of another microbatch");
  ImGui::SameLine();
  if (ImGui::Button("step")) stepper.step_training(1);
  tooltip("every rank advances to the beginning of the next training step");
  ImGui::EndDisabled();
  dim_text(where_text(state));
  if (running) return;
  tooltip("a hash of all boundaries that the ranks have reached: equal in every run that was paused here");
}

std::string where_text(const StepperState& state) {
  if (state.mode == StepperMode::kRunning) return "until a breakpoint, or a pause";
  return strprintf("step %d   state %016" PRIx64, current_step(state), state.hash);
}

bool is_up_to_date(const StepperState& state, const RankState& rank) {
  const bool stands = state.mode == StepperMode::kPaused || state.mode == StepperMode::kPausing;
  return stands || rank.activity != RankActivity::kRunning;
}

void StepperPanel::hits(Workspace& workspace, const StepperState& state) {
  for (const BreakpointHit& hit : state.hits) {
    colored_text(theme::kCursor,
                 strprintf("breakpoint %d: r%d at %s", hit.breakpoint, hit.global_rank, to_text(hit.at).c_str()));
    ImGui::SameLine();
    ImGui::PushID(hit.breakpoint * 4096 + hit.global_rank);
    if (ImGui::SmallButton("show")) workspace.set_time(hit.at.virtual_ns);
    ImGui::PopID();
  }
}

void StepperPanel::ranks(Workspace& workspace, StepperControl& stepper, const StepperState& state) {
  constexpr ImGuiTableFlags kFlags = ImGuiTableFlags_RowBg | ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_ScrollX;
  const float height =
      ImGui::GetTextLineHeightWithSpacing() * (static_cast<float>(state.ranks.size()) + 2) + scaled(16);
  if (!ImGui::BeginTable("ranks", 6, kFlags, {0, std::min(height, ImGui::GetContentRegionAvail().y * 0.6f)})) return;
  for (const char* heading : {"rank", "is", "at", "virtual", "events", ""}) ImGui::TableSetupColumn(heading);
  ImGui::TableHeadersRow();
  const int next = next_rank(state);
  for (const RankState& rank : state.ranks) {
    ImGui::PushID(rank.global_rank);
    ImGui::TableNextColumn();
    if (ImGui::Selectable(strprintf("r%d%s", rank.global_rank, rank.global_rank == next ? " next" : "").c_str()))
      workspace.set_time(rank.virtual_ns);
    ImGui::TableNextColumn();
    const bool ended = state.mode == StepperMode::kEnded && rank.activity == RankActivity::kRunning;
    colored_text(activity_color(ended ? RankActivity::kDone : rank.activity), ended ? "ended" : name(rank.activity));
    ImGui::TableNextColumn();
    if (rank.activity != RankActivity::kRunning) text(to_text(rank.at));
    if (!rank.waits_for.empty()) {
      ImGui::SameLine();
      dim_text("waits for " + join(std::span<const int>(rank.waits_for), " "));
    }
    ImGui::TableNextColumn();
    const bool told = is_up_to_date(state, rank);
    if (told) right_text(human_ns(static_cast<double>(rank.virtual_ns)));
    ImGui::TableNextColumn();
    if (told) right_text(strprintf("%lld", static_cast<long long>(rank.events)));
    ImGui::TableNextColumn();
    ImGui::BeginDisabled(state.mode != StepperMode::kPaused || rank.activity == RankActivity::kDone);
    if (ImGui::SmallButton("step")) stepper.step_rank(rank.global_rank, 1);
    ImGui::EndDisabled();
    ImGui::PopID();
  }
  ImGui::EndTable();
}

void StepperPanel::breakpoints(StepperControl& stepper, const StepperState& state) {
  ImGui::SeparatorText("Breakpoints");
  ImGui::SetNextItemWidth(scaled(230));
  bool add = ImGui::InputTextWithHint("##breakpoint", "F mb=3 rank=2", &typed_, ImGuiInputTextFlags_EnterReturnsTrue);
  tooltip(
      "F mb=3 rank=2   before that forward\nall_to_all   before any of them\naxis=dp rank=0   before a call there\n"
      "step=12   where step 12 begins\nloss is nan   loss > 6   wait > 2ms   memory > 2GiB");
  ImGui::SameLine();
  add |= ImGui::Button("add");
  if (add && !typed_.empty()) {
    try {
      stepper.add_breakpoint(parse_breakpoint(typed_));
      typed_.clear();
      complaint_.clear();
    } catch (const Error& error) {
      complaint_ = error.what();
    }
  }
  if (!complaint_.empty()) {
    ImGui::PushTextWrapPos(0);
    colored_text(theme::kBad, complaint_);
    ImGui::PopTextWrapPos();
  }
  for (const Breakpoint& breakpoint : state.breakpoints) {
    ImGui::PushID(breakpoint.id);
    if (ImGui::SmallButton("remove")) stepper.remove_breakpoint(breakpoint.id);
    ImGui::SameLine();
    text(strprintf("%d  %s", breakpoint.id, to_text(breakpoint).c_str()));
    ImGui::SameLine();
    dim_text(strprintf("hit %lld times", static_cast<long long>(breakpoint.hits)));
    ImGui::PopID();
  }
}

}  // namespace ranklab::viz
