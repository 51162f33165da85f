#include "viz/panels/timeline/timeline_panel.h"

#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "core/live/stepper_state.h"
#include "viz/model/store/time_text.h"
#include "viz/panels/parts/theme.h"
#include "viz/panels/parts/widgets.h"

namespace ranklab::viz {

namespace {

// Why a live run has not shown anything yet.
std::string waits_for(LiveSource& live) {
  StepperControl* stepper = live.stepper();
  if (stepper == nullptr) return "The run has not recorded anything yet.";
  const StepperState state = stepper->state();
  const auto parked = std::count_if(state.ranks.begin(), state.ranks.end(),
                                    [](const RankState& rank) { return rank.activity == RankActivity::kParked; });
  if (state.mode != StepperMode::kPaused || parked == 0) return "The run has not recorded anything yet.";
  return strprintf(
      "%lld ranks are parked at %s, before anything is recorded.\n\n"
      "Right: one event     Shift+Right: one step     Space: run",
      static_cast<long long>(parked), to_text(state.ranks.front().at).c_str());
}

}  // namespace

std::string TimelinePanel::nothing_to_show(Workspace& workspace) {
  if (!workspace.store().empty()) return {};
  if (workspace.live) return waits_for(*workspace.live);
  return "No trace is open.\n\n./ranklab train --pp 4 --tp 2 --train-iters 3   records one\n"
         "./ranklab viz last   opens the last one\n\nor File > Open (Ctrl+O)";
}

namespace {

// Places the checkbox on this line, or on the next one if the panel is narrow.
void checkbox_if_fits(const char* words, bool& value) {
  same_line_if_fits(ImGui::GetFrameHeight() + ImGui::GetStyle().ItemInnerSpacing.x + text_width(words));
  ImGui::Checkbox(words, &value);
}

}  // namespace

void TimelinePanel::toolbar(Workspace& workspace) {
  TraceStore& store = workspace.store();
  const bool both = both_clocks_.get(workspace.content(store.whole()), [&] {  // visits every event
    return store.has_clock(TraceClock::kVirtual) && store.has_clock(TraceClock::kWall);
  });
  if (both) {
    TraceClock clock = store.clock();
    if (choice({"virtual time", "wall time"}, clock)) {
      store.set_clock(clock);
      workspace.refresh_tables();
      workspace.area.reset();
      workspace.camera.show(store.range(), 0.01);
      workspace.set_time(store.range().begin_ns);
    }
    tooltip("virtual: what the simulated hardware would show; wall: what this machine measured");
    ImGui::SameLine(0, scaled(16));
  }
  if (ImGui::Button("fit")) workspace.camera.show(store.range(), 0.01);
  tooltip("the whole trace (F twice)");
  ImGui::SameLine();
  ImGui::BeginDisabled(workspace.step() < 0);
  if (ImGui::Button("step")) {
    if (const auto window = store.step_window(workspace.step())) workspace.camera.show(window->range, 0.01);
  }
  ImGui::EndDisabled();
  tooltip("the step at the cursor");
  checkbox_if_fits("bubbles", workspace.show_bubbles);
  checkbox_if_fits("arrows", workspace.show_arrows);
  tooltip("what the chosen event waited for, and what waited for it");
  checkbox_if_fits("critical path", workspace.show_critical_path);
  checkbox_if_fits("modules", workspace.show_modules);
  tooltip("modules and kernels below the actions, where there is room: choose one rank in its label to make room");
  const std::string seen = "shows " + format_time(store, static_cast<int64_t>(workspace.camera.length_ns()));
  same_line_if_fits(text_width(seen));
  dim_text(seen);
}

void TimelinePanel::draw(Workspace& workspace) {
  toolbar(workspace);
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const ImVec2 space = ImGui::GetContentRegionAvail();
  const float ruler = ImGui::GetTextLineHeight() + scaled(8);
  const bool with_legend = space.y > scaled(210);
  const float footer = ImGui::GetTextLineHeightWithSpacing() + (with_legend ? legend_height_ : 0) + scaled(6);
  const float height = std::max(space.y - ruler - footer, scaled(60));
  lay_out_columns(layout_, workspace.camera, origin, space.x - ImGui::GetStyle().ScrollbarSize);
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  draw.AddRectFilled(origin, {origin.x + space.x, origin.y + ruler + height}, theme::kField);
  draw_ruler(draw, layout_, workspace, origin.y, ruler, origin.y + ruler + height);
  draw_totals_heading(draw, layout_, origin.y, ruler);
  ImGui::SetCursorScreenPos({origin.x, origin.y + ruler});
  rows(workspace, height);
  const TraceStore& store = workspace.store();
  draw_means(workspace, layout_);
  if (!with_legend) return;
  // The text wraps with the panel's width, so the next frame reserves the height that it needed in this one.
  const float before = ImGui::GetCursorPosY();
  draw_legend(workspace, legend_.get(workspace.content(store.whole()), [&] { return legend_of(store); }));
  legend_height_ = ImGui::GetCursorPosY() - before;
}

void TimelinePanel::rows(Workspace& workspace, float height) {
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
  const bool open = ImGui::BeginChild("rows", {0, height}, 0, ImGuiWindowFlags_NoMove);
  ImGui::PopStyleVar();
  if (open) {
    const float top = ImGui::GetCursorScreenPos().y;
    lay_out_rows(layout_, workspace, top, height);
    const float width = layout_.right - layout_.left;
    ImGui::InvisibleButton("canvas", {width, std::max(layout_.bottom - top, height)},
                           ImGuiButtonFlags_MouseButtonLeft | ImGuiButtonFlags_MouseButtonMiddle);
    const bool hovered = ImGui::IsItemHovered();
    input(workspace, hovered);
    layout_.camera = workspace.camera;
    const float y_from = ImGui::GetWindowPos().y, y_to = y_from + ImGui::GetWindowHeight();
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const TraceStore& store = workspace.store();
    painter_.draw_stripes(draw, layout_);
    draw_labels(draw, layout_, store);
    draw.PushClipRect({layout_.plot_left, y_from}, {layout_.plot_right, y_to}, true);
    if (workspace.show_bubbles) painter_.draw_bubbles(draw, layout_, workspace.bubbles_of_trace(), y_from, y_to);
    painter_.draw_blocks(draw, layout_, store, y_from, y_to);
    if (workspace.show_bubbles) painter_.draw_stalls(draw, layout_, workspace.bubbles_of_trace(), y_from, y_to);
    if (workspace.live != nullptr && workspace.live->stepper() != nullptr)
      painter_.draw_growing(draw, layout_, growing_blocks(store, workspace.live->stepper()->state()));
    overlays(workspace, draw);
    draw.PopClipRect();
    if (layout_.totals) draw_rank_totals(draw, layout_, workspace.bubbles());
    if (hovered && drag_.kind == Drag::Kind::kNone) timeline_tooltip(workspace, layout_, ImGui::GetMousePos());
  }
  ImGui::EndChild();
}

void TimelinePanel::overlays(Workspace& workspace, ImDrawList& draw) {
  const TraceStore& store = workspace.store();
  if (workspace.show_critical_path) painter_.draw_critical_path(draw, layout_, workspace.critical_path());
  if (workspace.area) {
    const RankBox *first = layout_.box_of(workspace.area->first_rank),
                  *last = layout_.box_of(workspace.area->last_rank);
    if (first != nullptr && last != nullptr) {
      const ImVec2 from(layout_.x_of(static_cast<double>(workspace.area->range.begin_ns)), first->top);
      const ImVec2 to(layout_.x_of(static_cast<double>(workspace.area->range.end_ns)), last->bottom);
      draw.AddRectFilled(from, to, with_alpha(theme::kAccent, 36));
      draw.AddRect(from, to, theme::kAccent);
    }
  }
  if (workspace.cursor.event) {
    if (workspace.show_arrows) arrows(workspace, draw);
    painter_.outline(draw, layout_, store, *workspace.cursor.event, theme::kOutline, scaled(2));
  }
  const float x = std::floor(layout_.x_of(static_cast<double>(workspace.cursor.time_ns))) + 0.5f;
  draw.AddLine({x, layout_.top}, {x, std::max(layout_.bottom, layout_.top + 4000)}, with_alpha(theme::kCursor, 200));
}

void TimelinePanel::arrows(Workspace& workspace, ImDrawList& draw) {
  const TraceStore& store = workspace.store();
  const EventRef chosen = *workspace.cursor.event;
  const auto& found = workspace.dependencies_of(chosen);
  const auto middle = [&](EventRef ref) {
    const auto place = store.place_of(ref);
    for (const RowBox& row : layout_.rows)
      if (place && row.rank == place->rank_index && row.row == place->row) return (row.top + row.bottom) / 2;
    return -1.f;
  };
  for (const Dependency& arrow : found) {
    const float y0 = middle(arrow.from), y1 = middle(arrow.to);
    if (y0 < 0 || y1 < 0) continue;
    const bool call = store.event(arrow.from).kind == EventKind::kCollective;
    const ImVec2 from(layout_.x_of(static_cast<double>(call ? store.begin_ns(arrow.from) : store.end_ns(arrow.from))),
                      y0);
    const ImVec2 to(layout_.x_of(static_cast<double>(store.begin_ns(arrow.to))), y1);
    const ImU32 color = arrow.incoming ? theme::kCursor : theme::kOutline;
    const float bend = std::max(scaled(14), (to.x - from.x) * 0.5f);
    draw.AddBezierCubic(from, {from.x + bend, from.y}, {to.x - bend, to.y}, to, color, scaled(1.6f));
    draw.AddTriangleFilled(to, {to.x - scaled(7), to.y - scaled(4)}, {to.x - scaled(7), to.y + scaled(4)}, color);
  }
}

void TimelinePanel::input(Workspace& workspace, bool hovered) {
  const ImGuiIO& io = ImGui::GetIO();
  if (hovered && io.KeyCtrl && io.MouseWheel != 0) {
    workspace.camera.zoom(std::pow(0.8, static_cast<double>(io.MouseWheel)), layout_.time_of(io.MousePos.x),
                          workspace.store().range());
    ImGui::SetItemKeyOwner(ImGuiKey_MouseWheelY);
  }
  if (hovered && io.MouseWheelH != 0) workspace.camera.pan(-0.1 * static_cast<double>(io.MouseWheelH));
  if (hovered && io.KeyShift && io.MouseWheel != 0) workspace.camera.pan(-0.1 * static_cast<double>(io.MouseWheel));
  if (ImGui::IsItemActivated() && io.MousePos.x >= layout_.plot_left && io.MousePos.x <= layout_.plot_right) {
    const bool pan = ImGui::IsMouseDown(ImGuiMouseButton_Middle) || io.KeyShift;
    drag_ = {pan ? Drag::Kind::kPan : Drag::Kind::kArea, layout_.time_of(io.MousePos.x), io.MousePos.y, false};
  }
  if (drag_.kind != Drag::Kind::kNone) drag(workspace);
  if (hovered && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) {
    const auto event = event_at(layout_, workspace.store(), io.MousePos);
    const bool call = event && workspace.store().event(*event).kind == EventKind::kCollective;
    if (event) workspace.requests.show_panel = call ? "comm" : "details";
  }
}

void TimelinePanel::drag(Workspace& workspace) {
  const ImVec2 mouse = ImGui::GetMousePos();
  const float from_x = layout_.x_of(drag_.from_ns);
  drag_.moved = drag_.moved || std::abs(mouse.x - from_x) > scaled(4);
  if (drag_.kind == Drag::Kind::kPan && drag_.moved) {
    workspace.camera.pan((drag_.from_ns - layout_.time_of(mouse.x)) / workspace.camera.length_ns());
  }
  if (drag_.kind == Drag::Kind::kArea && drag_.moved && !layout_.ranks.empty()) {
    const float low = std::clamp(std::min(mouse.y, drag_.from_y), layout_.top, layout_.bottom - 1);
    const float high = std::clamp(std::max(mouse.y, drag_.from_y), layout_.top, layout_.bottom - 1);
    const RankBox *first = layout_.rank_at(low), *last = layout_.rank_at(high);
    const double here = layout_.time_of(std::clamp(mouse.x, layout_.plot_left, layout_.plot_right));
    if (first != nullptr && last != nullptr) {
      const auto [begin, end] = std::minmax(here, drag_.from_ns);
      workspace.area = Area{{std::llround(begin), std::llround(end)}, first->rank, last->rank};
    }
  }
  if (ImGui::IsMouseDown(ImGuiMouseButton_Left) || ImGui::IsMouseDown(ImGuiMouseButton_Middle)) return;
  if (!drag_.moved) click(workspace, mouse);
  drag_.kind = Drag::Kind::kNone;
}

void TimelinePanel::click(Workspace& workspace, ImVec2 point) {
  const auto event = event_at(layout_, workspace.store(), point);
  workspace.area.reset();
  if (event) return workspace.select(event);
  // A bubble is represented by the call in which the rank waited, so its arrows lead to the rank that it waited for.
  const IdleInterval* idle = workspace.show_bubbles ? idle_at(layout_, workspace.bubbles_of_trace(), point) : nullptr;
  const RowBox* box = layout_.row_at(point.y);
  if (idle != nullptr && box != nullptr && idle->event != kNoEvent) {
    workspace.select(EventRef{box->rank, static_cast<uint32_t>(idle->event)});
    workspace.requests.show_panel = "details";
    return workspace.set_time(std::llround(layout_.time_of(point.x)));
  }
  workspace.cursor.event.reset();
  workspace.set_time(std::llround(layout_.time_of(point.x)));
}

}  // namespace ranklab::viz
