#include "viz/panels/parts/widgets.h"

#include <algorithm>
#include <cmath>

#include "viz/panels/parts/theme.h"

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

void heat_legend(std::string_view low, std::string_view high) {
  constexpr int kSteps = 16;
  dim_text(low);
  ImGui::SameLine(0, ImGui::GetFontSize() * 0.3f);
  const float height = ImGui::GetTextLineHeight(), wide = height / 4;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  for (int i = 0; i < kSteps; ++i) {
    const float x = at.x + wide * static_cast<float>(i);
    draw.AddRectFilled({x, at.y + 2}, {x + wide, at.y + height - 2},
                       heat_colour(static_cast<float>(i) / static_cast<float>(kSteps - 1)));
  }
  ImGui::Dummy({wide * kSteps, height});
  ImGui::SameLine(0, ImGui::GetFontSize() * 0.3f);
  dim_text(high);
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

namespace {

// Lines start at multiples of the spacing on the screen, so that they continue in neighbouring rectangles.
float first_line(float from, float spacing) { return std::ceil(from / spacing) * spacing; }

void slanted(ImDrawList& draw, ImVec2 from, ImVec2 to, ImU32 color, float spacing, bool rising) {
  const float height = to.y - from.y;
  for (float x = first_line(from.x - height, spacing); x < to.x; x += spacing) {
    const float left = std::max(x, from.x), right = std::min(x + height, to.x);
    if (left >= right) continue;
    const float drop = left - x, end = right - x;
    if (rising)
      draw.AddLine({left, to.y - drop}, {right, to.y - end}, color);
    else
      draw.AddLine({left, from.y + drop}, {right, from.y + end}, color);
  }
}

}  // namespace

void hatch(ImDrawList& draw, ImVec2 from, ImVec2 to, ImU32 color, float spacing, Texture texture) {
  switch (texture) {
    case Texture::kCrossed:
      slanted(draw, from, to, color, spacing * 1.5f, true);
      return slanted(draw, from, to, color, spacing * 1.5f, false);
    case Texture::kRising:
    case Texture::kFalling:
      return slanted(draw, from, to, color, spacing, texture == Texture::kRising);
    case Texture::kVertical:
      for (float x = first_line(from.x, spacing); x < to.x; x += spacing) draw.AddLine({x, from.y}, {x, to.y}, color);
      return;
    case Texture::kHorizontal:
      for (float y = first_line(from.y, spacing); y < to.y; y += spacing) draw.AddLine({from.x, y}, {to.x, y}, color);
      return;
    case Texture::kPlain:
      return;
  }
}

void fill_bubble(ImDrawList& draw, ImVec2 from, ImVec2 to, BubbleCause cause, float spacing) {
  // Tints are pale, which suits the dark theme.
  const bool light = theme_kind() == ThemeKind::kLight;
  const ImU32 tint = light ? blend(im_color(colour(cause)), IM_COL32(0, 0, 0, 255), 0.38f) : im_color(colour(cause));
  const bool hatched = to.x - from.x >= spacing;  // narrower ones get the average colour of fill and lines
  draw.AddRectFilled(from, to, with_alpha(tint, hatched ? 48 : 84));
  if (hatched) hatch(draw, from, to, with_alpha(tint, 150), spacing, texture(cause));
}

void dim_text(std::string_view words) { colored_text(theme::kDim, words); }

void label(std::string_view words) {
  ImGui::AlignTextToFramePadding();
  dim_text(words);
  ImGui::SameLine(0, ImGui::GetFontSize() * 0.4f);
}

bool step_slider(const char* id, float width, int& value, int low, int high, std::string_view words) {
  ImGui::SetNextItemWidth(width);
  const bool changed = ImGui::SliderInt(id, &value, low, high, "", ImGuiSliderFlags_AlwaysClamp);
  ImGui::SameLine(0, ImGui::GetFontSize() * 0.4f);
  text(words);
  return changed;
}

void same_line_if_fits(float width) {
  const float right = ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x;
  if (ImGui::GetItemRectMax().x + ImGui::GetStyle().ItemSpacing.x + width <= right) ImGui::SameLine();
}

void colored_text(ImU32 color, std::string_view words) {
  ImGui::PushStyleColor(ImGuiCol_Text, color);
  text(words);
  ImGui::PopStyleColor();
}

std::string elided(std::string_view words, float width) {
  if (text_width(words) <= width) return std::string(words);
  size_t fits = 0, too_much = words.size();
  while (fits + 1 < too_much) {
    const size_t middle = (fits + too_much) / 2;
    (text_width(words.substr(0, middle)) + text_width("...") <= width ? fits : too_much) = middle;
  }
  while (fits > 0 && (static_cast<unsigned char>(words[fits]) & 0xC0) == 0x80) --fits;  // cut only between characters
  return std::string(words.substr(0, fits)) + "...";
}

void right_text(std::string_view words) {
  const float width = text_width(words);
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

bool begin_popup_at_item(const char* id) {
  const ImGuiViewport& view = *ImGui::GetMainViewport();
  const ImVec2 from = ImGui::GetItemRectMin(), to = ImGui::GetItemRectMax();
  const bool right = from.x > view.Pos.x + view.Size.x / 2, low = from.y > view.Pos.y + view.Size.y / 2;
  ImGui::SetNextWindowPos({right ? to.x : from.x, low ? from.y : to.y}, ImGuiCond_Appearing,
                          {right ? 1.f : 0.f, low ? 1.f : 0.f});
  return ImGui::BeginPopup(id);
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

namespace {

constexpr float kSwatch = 0.72f, kSwatchGap = 0.35f;  // in font sizes

// draw(from, to) fills a rectangle in front of the words; `width` is in font sizes.
template <typename Draw>
void filled_swatch(float width, std::string_view words, Draw draw) {
  const float high = ImGui::GetFontSize() * kSwatch, wide = ImGui::GetFontSize() * width;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float top = at.y + (ImGui::GetTextLineHeight() - high) / 2 + 1;
  draw(ImVec2(at.x, top), ImVec2(at.x + wide, top + high));
  ImGui::Dummy({wide, ImGui::GetTextLineHeight()});
  ImGui::SameLine(0, ImGui::GetFontSize() * kSwatchGap);
  text(words);
}

}  // namespace

float swatch_width(std::string_view words) { return text_width(words) + ImGui::GetFontSize() * (kSwatch + kSwatchGap); }

void swatch(ImU32 color, std::string_view words) {
  filled_swatch(kSwatch, words,
                [&](ImVec2 from, ImVec2 to) { ImGui::GetWindowDrawList()->AddRectFilled(from, to, color, 2); });
}

void swatch(BubbleCause cause, std::string_view words) {
  filled_swatch(1.5f, words,
                [&](ImVec2 from, ImVec2 to) { fill_bubble(*ImGui::GetWindowDrawList(), from, to, cause, scaled(5)); });
}

}  // namespace ranklab::viz
