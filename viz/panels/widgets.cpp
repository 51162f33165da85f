#include "viz/panels/widgets.h"

#include <algorithm>
#include <cmath>

#include "viz/panels/theme.h"

namespace ranklab::viz {

ImU32 blend(ImU32 a, ImU32 b, float t) {
  const ImVec4 x = ImGui::ColorConvertU32ToFloat4(a), y = ImGui::ColorConvertU32ToFloat4(b);
  return ImGui::ColorConvertFloat4ToU32(
      {x.x + (y.x - x.x) * t, x.y + (y.y - x.y) * t, x.z + (y.z - x.z) * t, x.w + (y.w - x.w) * t});
}

ImU32 heat_colour(float t) {
  const ImU32 low = IM_COL32(27, 38, 56, 255), middle = IM_COL32(33, 122, 138, 255), high = IM_COL32(246, 214, 96, 255);
  return t < 0.5f ? blend(low, middle, t * 2) : blend(middle, high, t * 2 - 1);
}

void centred_text(ImDrawList& draw, ImVec2 from, ImVec2 size, ImU32 color, const std::string& words, float share) {
  float height = ImGui::GetFontSize() * share;
  float width = ImGui::GetFont()->CalcTextSizeA(height, FLT_MAX, 0, words.c_str()).x;
  if (width > size.x - 4) {
    height = std::max(height * (size.x - 4) / width, ImGui::GetFontSize() * 0.55f);
    width = ImGui::GetFont()->CalcTextSizeA(height, FLT_MAX, 0, words.c_str()).x;
  }
  if (width > size.x || height > size.y) return;
  draw.AddText(ImGui::GetFont(), height,
               {std::floor(from.x + (size.x - width) / 2), std::floor(from.y + (size.y - height) / 2)}, color,
               words.c_str());
}

void hatch(ImDrawList& draw, ImVec2 from, ImVec2 to, ImU32 color, float spacing) {
  const float height = to.y - from.y;
  // Makes the lines of neighbours join: positions are multiples of the spacing on the screen.
  const float first = std::floor((from.x - height) / spacing) * spacing;
  for (float x = first; x < to.x; x += spacing) {
    const float left = std::max(x, from.x), right = std::min(x + height, to.x);
    if (left >= right) continue;
    draw.AddLine({left, to.y - (left - x)}, {right, to.y - (right - x)}, color);
  }
}

void dim_text(std::string_view words) { colored_text(theme::kDim, words); }

void same_line_if_fits(float width) {
  const float right = ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x;
  if (ImGui::GetItemRectMax().x + ImGui::GetStyle().ItemSpacing.x + width <= right) ImGui::SameLine();
}

void colored_text(ImU32 color, std::string_view words) {
  ImGui::PushStyleColor(ImGuiCol_Text, color);
  text(words);
  ImGui::PopStyleColor();
}

void right_text(std::string_view words) {
  const float width = ImGui::CalcTextSize(words.data(), words.data() + words.size()).x;
  const float free = ImGui::GetContentRegionAvail().x - width;
  if (free > 0) ImGui::SetCursorPosX(ImGui::GetCursorPosX() + free);
  text(words);
}

void tooltip(const char* words) {
  if (!ImGui::IsItemHovered(ImGuiHoveredFlags_ForTooltip)) return;
  ImGui::BeginTooltip();
  ImGui::PushTextWrapPos(ImGui::GetFontSize() * 32);
  ImGui::TextUnformatted(words);
  ImGui::PopTextWrapPos();
  ImGui::EndTooltip();
}

void help_marker(const char* words) {
  dim_text("(?)");
  tooltip(words);
}

void empty_state(const std::string& words) {
  const ImVec2 space = ImGui::GetContentRegionAvail();
  const float width = std::min(space.x - 2 * ImGui::GetFontSize(), ImGui::GetFontSize() * 36);
  const ImVec2 size = ImGui::CalcTextSize(words.c_str(), nullptr, false, width);
  const ImVec2 at = ImGui::GetCursorPos();
  ImGui::SetCursorPos({at.x + std::max(0.f, (space.x - size.x) / 2), at.y + std::max(0.f, (space.y - size.y) / 2.4f)});
  ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + std::max(width, 40.f));
  dim_text(words);
  ImGui::PopTextWrapPos();
}

void swatch(ImU32 color, std::string_view words) {
  const float side = ImGui::GetFontSize() * 0.72f;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float top = at.y + (ImGui::GetTextLineHeight() - side) / 2 + 1;
  ImGui::GetWindowDrawList()->AddRectFilled({at.x, top}, {at.x + side, top + side}, color, 2);
  ImGui::Dummy({side, ImGui::GetTextLineHeight()});
  ImGui::SameLine(0, ImGui::GetFontSize() * 0.35f);
  text(words);
}

}  // namespace ranklab::viz
