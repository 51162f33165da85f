#include "viz/app/transport_bar.h"

#include <imgui.h>
#include <misc/cpp/imgui_stdlib.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/text.h"
#include "viz/app/command_actions.h"
#include "viz/app/transport_icons.h"
#include "viz/model/curves.h"
#include "viz/model/store/time_text.h"
#include "viz/panels/parts/theme.h"
#include "viz/panels/parts/widgets.h"

namespace ranklab::viz {
namespace {

ImU32 heat(float idle) {
  const ImU32 busy = IM_COL32(44, 86, 116, 255), waiting = IM_COL32(214, 140, 74, 255);
  return blend(busy, waiting, idle);
}

std::string speed_hint(const Workspace& workspace) {
  const auto steps = static_cast<double>(std::max<size_t>(workspace.store().steps().size(), 1));
  const double per_second = static_cast<double>(workspace.store().range().length_ns()) / steps / 10 *
                            static_cast<double>(workspace.playback.speed);
  return "speed: plays " + format_time(workspace.store(), std::llround(per_second)) +
         " a second; at 1x a step takes ten seconds";
}

}  // namespace

float TransportBar::height() const {
  const ImGuiStyle& style = ImGui::GetStyle();
  return static_cast<float>(rows_ + 1) * (ImGui::GetFrameHeight() + style.ItemSpacing.y) - style.ItemSpacing.y +
         2 * style.WindowPadding.y;
}

void TransportBar::draw(Workspace& workspace) {
  rows_ = 1;
  begin_group(kButtons);
  buttons(workspace);
  end_group(kButtons);
  begin_group(kSpeed);
  speed(workspace);
  end_group(kSpeed);
  begin_group(kStep);
  step(workspace);
  end_group(kStep);
  begin_group(kScope);
  scope(workspace);
  end_group(kScope);
  links(workspace);
  scrubber(workspace);
}

// Stays on the current row if the group fits, assuming its width in the last frame.
void TransportBar::begin_group(Group group) {
  if (group != kButtons) {
    ImGui::SameLine(0, scaled(14));
    if (widths_[group] > ImGui::GetContentRegionAvail().x) {
      ImGui::NewLine();
      ++rows_;
    }
  }
  ImGui::BeginGroup();
}

void TransportBar::end_group(Group group) {
  ImGui::EndGroup();
  widths_[group] = ImGui::GetItemRectSize().x;
}

void TransportBar::buttons(Workspace& w) {
  const float gap = scaled(3);
  if (icon_button("step_back", Icon::kStepBack, "one step back (Shift+Left)")) action::step_back(w);
  ImGui::SameLine(0, gap);
  if (icon_button("event_back", Icon::kEventBack, "one event back (Left)")) action::event_back(w);
  ImGui::SameLine(0, gap);
  const bool playing = w.playback.state == PlayState::kPlaying;
  if (icon_button("play", playing ? Icon::kPause : Icon::kPlay, "play or pause (Space)", playing))
    action::play_or_pause(w);
  ImGui::SameLine(0, gap);
  if (icon_button("event_forward", Icon::kEventForward, "one event forward (Right)")) action::event_forward(w);
  ImGui::SameLine(0, gap);
  if (icon_button("step_forward", Icon::kStepForward, "one step forward (Shift+Right)")) action::step_forward(w);
  ImGui::SameLine(0, scaled(8));
  ImGui::BeginDisabled(w.live == nullptr);
  if (icon_button("follow", Icon::kFollow, "follow a live run", w.playback.state == PlayState::kFollowing))
    action::follow(w);
  ImGui::EndDisabled();
}

void TransportBar::speed(Workspace& w) {
  label("speed");
  ImGui::SetNextItemWidth(scaled(62));
  ImGui::DragFloat("##speed", &w.playback.speed, 0.02f, 0.1f, 100, "%.1fx",
                   ImGuiSliderFlags_Logarithmic | ImGuiSliderFlags_AlwaysClamp);
  if (ImGui::IsItemHovered()) tooltip(speed_hint(w).c_str());
  ImGui::SameLine();
  ImGui::SetNextItemWidth(scaled(118));
  int loop = static_cast<int>(w.playback.loop);
  if (ImGui::Combo("##loop", &loop, "no loop\0loop selection\0loop all\0"))
    w.playback.loop = static_cast<LoopMode>(loop);
}

void TransportBar::step(Workspace& w) {
  const TraceStore& store = w.store();
  ImGui::AlignTextToFramePadding();
  dim_text(store.steps().empty() ? "no steps" : "step");
  ImGui::SameLine();
  ImGui::SetNextItemWidth(scaled(58));
  int step = w.step();
  if (!store.steps().empty() && ImGui::InputInt("##step", &step, 0, 0, ImGuiInputTextFlags_EnterReturnsTrue)) {
    if (const auto window = store.step_window(step)) {
      w.cursor.event.reset();
      w.set_time(window->range.begin_ns);
    } else {
      w.log(LogLine::Level::kWarning, strprintf("no step %d; the trace has %d to %d", step, store.steps().front().step,
                                                store.steps().back().step));
    }
  }
  ImGui::SameLine();
  if (!store.steps().empty()) {
    dim_text(place_text(store, w.step()));
    tooltip(strprintf("the trace has step %d to step %d; type one to go there", store.steps().front().step,
                      store.steps().back().step)
                .c_str());
    ImGui::SameLine(0, scaled(12));
  }
  dim_text("at");
  ImGui::SameLine();
  text(format_time(store, w.cursor.time_ns - store.range().begin_ns));
}

void TransportBar::scope(Workspace& w) {
  label("tables of");
  ImGui::SetNextItemWidth(scaled(110));
  int scope = static_cast<int>(w.scope);
  if (ImGui::Combo("##scope", &scope, "the trace\0the step\0the selection\0")) w.scope = static_cast<Scope>(scope);
  tooltip("what totals, matrix and tables cover; without a selection, or outside a step, the whole trace");
}

void TransportBar::links(Workspace& w) {
  const float least = scaled(90), copy = scaled(58);
  ImGui::SameLine(0, scaled(14));
  const float space = ImGui::GetContentRegionAvail().x - copy - ImGui::GetStyle().ItemSpacing.x;
  if (space < least) return ImGui::NewLine();  // Ctrl+L copies the link as well
  const std::string here = w.store().empty() ? std::string() : w.deep_link();
  ImGui::SetNextItemWidth(space);
  if (ImGui::InputTextWithHint("##link", here.c_str(), &link_, ImGuiInputTextFlags_EnterReturnsTrue)) {
    try {
      w.go_to(link_);
      link_.clear();
    } catch (const Error& error) {
      w.log(LogLine::Level::kError, error.what());
    }
  }
  tooltip("position of the cursor; type one such as step=1,sel=r3/B7 to go there");
  ImGui::SameLine();
  if (ImGui::Button("copy", {copy, 0})) action::copy_link(w);
  tooltip("copy the link (Ctrl+L); Ctrl+Shift+L goes to the one in the clipboard");
}

const std::vector<int64_t>& TransportBar::trouble(Workspace& w) {
  const TraceStore& store = w.store();
  return trouble_.get(w.content(store.whole()), [&] {
    std::vector<int64_t> times;
    for (const Curve& curve : curves(store))
      for (const int step : curve.bad_steps)
        if (const auto window = store.step_window(step)) times.push_back(window->range.begin_ns);
    return times;
  });
}

void TransportBar::scrubber(Workspace& w) {
  const float width = ImGui::GetContentRegionAvail().x, height = ImGui::GetFrameHeight();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::InvisibleButton("scrubber", {std::max(width, 20.f), height});
  const TraceStore& store = w.store();
  const TimeRange whole = store.range();
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const ImVec2 to(at.x + width, at.y + height);
  draw.AddRectFilled(at, to, theme::kField, scaled(3));
  if (whole.empty()) return;
  const auto x_of = [&](double time) {
    const double share = (time - static_cast<double>(whole.begin_ns)) / static_cast<double>(whole.length_ns());
    return at.x + static_cast<float>(std::clamp(share, 0.0, 1.0)) * width;
  };
  const int columns = std::max(1, static_cast<int>(width / 2));
  const auto& strip =
      strip_.get({w.content(store.whole()), columns}, [&] { return idle_strip(w.bubbles_of_trace(), whole, columns); });
  const float top = at.y + height * 0.28f, bottom = at.y + height * 0.72f;
  for (size_t i = 0; i < strip.size(); ++i) {
    const float x = at.x + static_cast<float>(i) * width / static_cast<float>(columns);
    draw.AddRectFilled({x, top}, {x + width / static_cast<float>(columns), bottom}, heat(strip[i]));
  }
  for (const StepRange& step : store.steps()) {
    const float x = x_of(static_cast<double>(step.range.begin_ns));
    draw.AddLine({x, at.y + height * 0.15f}, {x, bottom},
                 with_alpha(theme::kText, store.steps().size() > 100 ? 30 : 110));
  }
  for (const int64_t time : trouble(w)) {
    const float at_x = x_of(static_cast<double>(time));
    draw.AddTriangleFilled({at_x - scaled(4), to.y}, {at_x + scaled(4), to.y}, {at_x, bottom}, theme::kBad);
  }
  const float left = x_of(w.camera.begin_ns), right = x_of(w.camera.end_ns);
  draw.AddRectFilled({at.x, at.y}, {left, to.y}, IM_COL32(10, 12, 15, 130));
  draw.AddRectFilled({right, at.y}, {to.x, to.y}, IM_COL32(10, 12, 15, 130));
  draw.AddRect({left, at.y}, {right, to.y}, with_alpha(theme::kText, 90), scaled(2));
  const float x = std::floor(x_of(static_cast<double>(w.cursor.time_ns))) + 0.5f;
  draw.AddLine({x, at.y}, {x, to.y}, theme::kCursor, scaled(2));
  if (ImGui::IsItemActive()) {
    const double share = std::clamp(static_cast<double>((ImGui::GetMousePos().x - at.x) / width), 0.0, 1.0);
    w.cursor.event.reset();
    w.set_time(whole.begin_ns + std::llround(share * static_cast<double>(whole.length_ns())));
    const double length = w.camera.length_ns(), here = static_cast<double>(w.cursor.time_ns);
    if (here < w.camera.begin_ns || here > w.camera.end_ns) {
      w.camera.begin_ns = here - length / 2;
      w.camera.end_ns = w.camera.begin_ns + length;
    }
  }
  tooltip("blue: ranks at work, orange: idle, red: a value that is not finite; drag to move the cursor");
}

}  // namespace ranklab::viz
