// The look of the visualizer: one scalable font, a calm dark theme, and the colours of its controls. Colours with a
// meaning (kinds of work, axes, causes) are in viz/model/palette.h. Thread rule: the thread of the ImGui context.
#pragma once
#include <imgui.h>

namespace ranklab::viz {

namespace theme {
inline constexpr ImU32 kText = IM_COL32(222, 227, 234, 255);
inline constexpr ImU32 kDim = IM_COL32(139, 149, 163, 255);
inline constexpr ImU32 kFaint = IM_COL32(92, 101, 114, 255);
inline constexpr ImU32 kWindow = IM_COL32(23, 26, 31, 255);
inline constexpr ImU32 kField = IM_COL32(17, 19, 23, 255);   // below a plot or a timeline
inline constexpr ImU32 kStripe = IM_COL32(27, 31, 37, 255);  // every second row of it
inline constexpr ImU32 kLine = IM_COL32(47, 53, 62, 255);
inline constexpr ImU32 kGrid = IM_COL32(255, 255, 255, 16);
inline constexpr ImU32 kAccent = IM_COL32(92, 168, 230, 255);
inline constexpr ImU32 kCursor = IM_COL32(255, 214, 102, 255);
inline constexpr ImU32 kCritical = IM_COL32(255, 92, 122, 255);
inline constexpr ImU32 kGood = IM_COL32(108, 199, 138, 255);
inline constexpr ImU32 kBad = IM_COL32(240, 113, 103, 255);
}  // namespace theme

// Call once per ImGui context: loads DejaVu Sans if installed, else ImGui's own scalable font.
void load_font();
// Sizes and colours for a display scale of 0.5 to 4 (1: 15 pixel text).
void apply_theme(float scale);
// A length that follows the scale.
float scaled(float pixels);

}  // namespace ranklab::viz
