// Drawing helpers that several panels use: palette colours for ImGui, hatching, help markers, tables of facts. Thread
// rule: the thread of the ImGui context.
#pragma once
#include <imgui.h>

#include <cfloat>
#include <string>
#include <string_view>

#include "viz/model/svg/palette.h"

namespace ranklab::viz {

// 0xRRGGBBAA -> ImGui's order.
constexpr ImU32 im_color(Rgba color) {
  return IM_COL32(color >> 24 & 255, color >> 16 & 255, color >> 8 & 255, color & 255);
}
constexpr ImU32 with_alpha(ImU32 color, int alpha) {
  return (color & ~IM_COL32_A_MASK) | static_cast<ImU32>(alpha) << IM_COL32_A_SHIFT;
}
ImU32 blend(ImU32 a, ImU32 b, float t);  // t = 0: a

inline ImVec4 plot_color(ImU32 color) { return ImGui::ColorConvertU32ToFloat4(color); }  // converted for ImPlot

// Maps 0 to 1 to dark blue, teal, yellow: brighter is more, also in grayscale.
ImU32 heat_colour(float t);
// Shows the colours of a heat map from `low` to `high`, on the current line.
void heat_legend(std::string_view low, std::string_view high);
// Centres words in a rectangle, makes them smaller if they do not fit, and omits them if even that does not help.
// `share`: relative to the font's height.
void centred_text(ImDrawList& draw, ImVec2 from, ImVec2 size, ImU32 color, const std::string& words, float share = 1);

// Draws hatching lines over a rectangle that continue in neighbouring rectangles.
void hatch(ImDrawList& draw, ImVec2 from, ImVec2 to, ImU32 color, float spacing, Texture texture = Texture::kRising);

inline float text_width(std::string_view words) {
  return ImGui::CalcTextSize(words.data(), words.data() + words.size()).x;
}
inline void text(std::string_view words) { ImGui::TextUnformatted(words.data(), words.data() + words.size()); }
void dim_text(std::string_view words);
// The name of the next item, in front of it on the same line.
void label(std::string_view words);
// A slider with its value to the right of it, given by `words`, instead of on the slider itself.
bool step_slider(const char* id, float width, int& value, int low, int high, std::string_view words);
// Puts the next item on this line if that much space is left.
void same_line_if_fits(float width);
void colored_text(ImU32 color, std::string_view words);
// The beginning of the words followed by "..." if they are wider than `width`.
std::string elided(std::string_view words, float width);
// Chooses places for labels of a certain size: a place is taken if it is far enough from the last taken one.
class RoomForLabels {
 public:
  explicit RoomForLabels(float size) : size_(size) {}
  bool take(float at) {
    if (at - last_ < size_) return false;
    last_ = at;
    return true;
  }

 private:
  float size_, last_ = -FLT_MAX;
};
// Text that is right-aligned in the cell or in the rest of the line.
void right_text(std::string_view words);
// "(?)" that shows an explanation on hover.
void help_marker(const char* words);
void tooltip(const char* words);  // for the last item, wrapped
// Text centred in the rest of the window: why it is empty, and what to run.
void empty_state(const std::string& words);
// A popup next to the last item, on the side towards the middle of the screen, where it is not cut off. Use like
// ImGui::BeginPopup().
bool begin_popup_at_item(const char* id);
// A small square of a colour, then its name on the same line.
void swatch(ImU32 color, std::string_view words);
float swatch_width(std::string_view words);  // width of swatch()
// The same for the cause of a bubble, with its texture.
void swatch(BubbleCause cause, std::string_view words);
// Fills a rectangle as a bubble with this cause.
void fill_bubble(ImDrawList& draw, ImVec2 from, ImVec2 to, BubbleCause cause, float spacing);

// Buttons for several choices, of which the current one is highlighted. RETURNS: whether another one was chosen.
template <typename Enum, size_t kCount>
bool choice(const char* const (&words)[kCount], Enum& value) {
  bool changed = false;
  for (size_t i = 0; i < kCount; ++i) {
    if (i > 0) ImGui::SameLine(0, 2);
    const bool on = static_cast<size_t>(value) == i;
    if (on) ImGui::PushStyleColor(ImGuiCol_Button, ImGui::GetStyleColorVec4(ImGuiCol_ButtonActive));
    if (ImGui::Button(words[i]) && !on) {
      value = static_cast<Enum>(i);
      changed = true;
    }
    if (on) ImGui::PopStyleColor();
  }
  return changed;
}

}  // namespace ranklab::viz
