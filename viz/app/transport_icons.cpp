#include "viz/app/transport_icons.h"

#include <imgui.h>

#include "viz/panels/parts/theme.h"
#include "viz/panels/parts/widgets.h"

namespace ranklab::viz {
namespace {

// Draws in a square of side 2 h about the centre.
struct Pen {
  ImDrawList& draw;
  ImVec2 centre;
  float h;
  ImU32 color;

  void triangle(float tip_x, float base_x) const {
    draw.AddTriangleFilled({centre.x + tip_x * h, centre.y}, {centre.x + base_x * h, centre.y - h * 0.8f},
                           {centre.x + base_x * h, centre.y + h * 0.8f}, color);
  }
  void bar(float left, float right) const {
    draw.AddRectFilled({centre.x + left * h, centre.y - h * 0.8f}, {centre.x + right * h, centre.y + h * 0.8f}, color);
  }
};

void draw_icon(const Pen& pen, Icon icon) {
  switch (icon) {
    case Icon::kStepBack:
      pen.bar(-0.9f, -0.6f);
      pen.triangle(-0.5f, 0.2f);
      pen.triangle(0.2f, 0.9f);
      break;
    case Icon::kEventBack:
      pen.bar(-0.7f, -0.4f);
      pen.triangle(-0.3f, 0.7f);
      break;
    case Icon::kPlay:
      pen.triangle(0.85f, -0.6f);
      break;
    case Icon::kPause:
      pen.bar(-0.6f, -0.15f);
      pen.bar(0.15f, 0.6f);
      break;
    case Icon::kEventForward:
      pen.triangle(0.3f, -0.7f);
      pen.bar(0.4f, 0.7f);
      break;
    case Icon::kStepForward:
      pen.triangle(-0.2f, -0.9f);
      pen.triangle(0.5f, -0.2f);
      pen.bar(0.6f, 0.9f);
      break;
    case Icon::kFollow:
      pen.draw.AddCircleFilled({pen.centre.x - pen.h * 0.45f, pen.centre.y}, pen.h * 0.35f, pen.color);
      pen.triangle(1.0f, 0.2f);
      break;
  }
}

}  // namespace

bool icon_button(const char* id, Icon icon, const char* hint, bool on) {
  const float side = ImGui::GetFrameHeight();
  if (on) ImGui::PushStyleColor(ImGuiCol_Button, ImGui::GetStyleColorVec4(ImGuiCol_ButtonActive));
  ImGui::PushID(id);
  const bool clicked = ImGui::Button("##icon", {side * 1.15f, side});
  ImGui::PopID();
  if (on) ImGui::PopStyleColor();
  const ImVec2 from = ImGui::GetItemRectMin(), to = ImGui::GetItemRectMax();
  const ImU32 color = ImGui::GetColorU32(on ? theme::kAccent : theme::kText);
  draw_icon({*ImGui::GetWindowDrawList(), {(from.x + to.x) / 2, (from.y + to.y) / 2}, side * 0.3f, color}, icon);
  tooltip(hint);
  return clicked;
}

}  // namespace ranklab::viz
