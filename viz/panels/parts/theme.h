// The look of the visualizer: one scalable font, a calm dark theme and a light one, and the colours of their controls.
// Colours with a meaning (kinds of work, axes, causes) are in viz/model/svg/palette.h. Thread rule: the thread of the
// ImGui context.
#pragma once
#include <imgui.h>

#include <cstdint>

namespace ranklab::viz {

enum class ThemeKind : uint8_t { kDark, kLight };

// The colours of the current theme; apply_theme() sets them.
namespace theme {
inline ImU32 kText = 0;
inline ImU32 kDim = 0;    // for less important text; contrast with the window at least 4.5 : 1, as for kText
inline ImU32 kFaint = 0;  // for marks and rulers
inline ImU32 kWindow = 0;
inline ImU32 kField = 0;   // background of a plot or a timeline
inline ImU32 kStripe = 0;  // background of every second row in it
inline ImU32 kLine = 0;
inline ImU32 kGrid = 0;
inline ImU32 kAccent = 0;
inline ImU32 kCursor = 0;
inline ImU32 kCritical = 0;
inline ImU32 kGood = 0;
inline ImU32 kBad = 0;
inline ImU32 kOutline = 0;  // around the chosen item
inline ImU32 kTile = 0;     // a tile whose colour shows no value
}  // namespace theme

// Call once per ImGui context: loads DejaVu Sans if installed, else ImGui's own scalable font.
void load_font();
// Sets sizes and colours for a display scale of 0.5 to 4 (1: 15 pixel text).
void apply_theme(float scale, ThemeKind kind = ThemeKind::kDark);
ThemeKind theme_kind();
// WCAG 2.1's contrast ratio of two opaque colours, 1 to 21.
double contrast(ImU32 a, ImU32 b);
// Multiplies a length by the display scale.
float scaled(float pixels);

}  // namespace ranklab::viz
