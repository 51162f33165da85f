#include "viz/panels/parts/theme.h"

#include <implot.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace ranklab::viz {
namespace {

constexpr float kFontSize = 15;
constexpr const char* kFontFile = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf";

ImVec4 rgb(ImU32 color) { return ImGui::ColorConvertU32ToFloat4(color); }

constexpr ImU32 grey(int level) { return IM_COL32(level, level, level, 255); }

// A theme's colours in addition to those of theme.h.
struct Surfaces {
  ImU32 popup, frame, frame_hovered, frame_active, bar, grab, grab_hovered, grab_active, empty, preview, shade;
  ImU32 slider, button, button_hovered, button_active, header, header_hovered, header_active, tab_hovered, tab_line;
  ImU32 table_header, table_border, row, selected, legend, grid;
};
constexpr Surfaces kDarkSurfaces = {
    .popup = IM_COL32(30, 34, 41, 250),
    .frame = IM_COL32(38, 43, 51, 255),
    .frame_hovered = IM_COL32(49, 56, 66, 255),
    .frame_active = IM_COL32(57, 65, 77, 255),
    .bar = IM_COL32(18, 20, 24, 255),
    .grab = IM_COL32(58, 65, 76, 255),
    .grab_hovered = IM_COL32(75, 84, 98, 255),
    .grab_active = IM_COL32(92, 103, 120, 255),
    .empty = IM_COL32(14, 16, 19, 255),
    .preview = IM_COL32(92, 168, 230, 110),
    .shade = IM_COL32(0, 0, 0, 110),
    .slider = IM_COL32(78, 141, 193, 150),
    .button = IM_COL32(42, 48, 57, 255),
    .button_hovered = IM_COL32(56, 64, 76, 255),
    .button_active = IM_COL32(66, 96, 124, 255),
    .header = IM_COL32(44, 62, 79, 255),
    .header_hovered = IM_COL32(50, 72, 93, 255),
    .header_active = IM_COL32(58, 86, 112, 255),
    .tab_hovered = IM_COL32(50, 72, 93, 255),
    .tab_line = IM_COL32(70, 80, 94, 255),
    .table_header = IM_COL32(31, 35, 42, 255),
    .table_border = IM_COL32(40, 45, 53, 255),
    .row = IM_COL32(255, 255, 255, 7),
    .selected = IM_COL32(92, 168, 230, 90),
    .legend = IM_COL32(30, 34, 41, 220),
    .grid = IM_COL32(255, 255, 255, 40),
};
constexpr Surfaces kLightSurfaces = {
    .popup = IM_COL32(252, 252, 253, 252),
    .frame = IM_COL32(230, 233, 238, 255),
    .frame_hovered = IM_COL32(219, 224, 231, 255),
    .frame_active = IM_COL32(207, 214, 223, 255),
    .bar = IM_COL32(232, 235, 239, 255),
    .grab = IM_COL32(190, 197, 206, 255),
    .grab_hovered = IM_COL32(165, 174, 186, 255),
    .grab_active = IM_COL32(140, 150, 164, 255),
    .empty = IM_COL32(222, 226, 231, 255),
    .preview = IM_COL32(28, 100, 172, 90),
    .shade = IM_COL32(0, 0, 0, 60),
    .slider = IM_COL32(96, 150, 205, 200),
    .button = IM_COL32(223, 227, 233, 255),
    .button_hovered = IM_COL32(208, 215, 224, 255),
    .button_active = IM_COL32(172, 200, 228, 255),
    .header = IM_COL32(208, 223, 239, 255),
    .header_hovered = IM_COL32(194, 214, 235, 255),
    .header_active = IM_COL32(178, 204, 230, 255),
    .tab_hovered = IM_COL32(194, 214, 235, 255),
    .tab_line = IM_COL32(150, 160, 172, 255),
    .table_header = IM_COL32(228, 232, 237, 255),
    .table_border = IM_COL32(214, 219, 226, 255),
    .row = IM_COL32(0, 0, 0, 9),
    .selected = IM_COL32(28, 100, 172, 70),
    .legend = IM_COL32(252, 252, 253, 225),
    .grid = IM_COL32(0, 0, 0, 40),
};

ThemeKind current = ThemeKind::kDark;
const Surfaces& surfaces() { return current == ThemeKind::kLight ? kLightSurfaces : kDarkSurfaces; }

void set_colors(ThemeKind kind) {
  current = kind;
  const bool light = kind == ThemeKind::kLight;
  const auto choose = [light](ImU32 dark, ImU32 bright) { return light ? bright : dark; };
  theme::kText = choose(IM_COL32(222, 227, 234, 255), IM_COL32(27, 32, 39, 255));
  theme::kDim = choose(IM_COL32(146, 156, 170, 255), IM_COL32(84, 93, 106, 255));
  theme::kFaint = choose(IM_COL32(128, 138, 152, 255), IM_COL32(101, 110, 123, 255));
  theme::kWindow = choose(IM_COL32(23, 26, 31, 255), IM_COL32(246, 247, 249, 255));
  theme::kField = choose(IM_COL32(17, 19, 23, 255), IM_COL32(255, 255, 255, 255));
  theme::kStripe = choose(IM_COL32(27, 31, 37, 255), IM_COL32(243, 245, 248, 255));
  theme::kLine = choose(IM_COL32(47, 53, 62, 255), IM_COL32(204, 210, 218, 255));
  theme::kGrid = choose(IM_COL32(255, 255, 255, 16), IM_COL32(0, 0, 0, 20));
  theme::kAccent = choose(IM_COL32(92, 168, 230, 255), IM_COL32(20, 94, 168, 255));
  theme::kCursor = choose(IM_COL32(255, 214, 102, 255), IM_COL32(146, 92, 0, 255));
  theme::kCritical = choose(IM_COL32(255, 92, 122, 255), IM_COL32(204, 20, 68, 255));
  theme::kGood = choose(IM_COL32(108, 199, 138, 255), IM_COL32(18, 114, 58, 255));
  theme::kBad = choose(IM_COL32(240, 113, 103, 255), IM_COL32(186, 38, 28, 255));
  theme::kOutline = choose(grey(255), grey(0));
  theme::kTile = choose(IM_COL32(32, 38, 48, 255), IM_COL32(226, 231, 238, 255));
}

void set_surfaces(ImVec4* c) {
  const Surfaces& s = surfaces();
  c[ImGuiCol_Text] = rgb(theme::kText);
  c[ImGuiCol_TextDisabled] = rgb(theme::kDim);
  c[ImGuiCol_WindowBg] = rgb(theme::kWindow);
  c[ImGuiCol_ChildBg] = ImVec4(0, 0, 0, 0);
  c[ImGuiCol_PopupBg] = rgb(s.popup);
  c[ImGuiCol_Border] = rgb(theme::kLine);
  c[ImGuiCol_BorderShadow] = ImVec4(0, 0, 0, 0);
  c[ImGuiCol_FrameBg] = rgb(s.frame);
  c[ImGuiCol_FrameBgHovered] = rgb(s.frame_hovered);
  c[ImGuiCol_FrameBgActive] = rgb(s.frame_active);
  c[ImGuiCol_TitleBg] = c[ImGuiCol_TitleBgActive] = c[ImGuiCol_TitleBgCollapsed] = rgb(s.bar);
  c[ImGuiCol_MenuBarBg] = rgb(s.bar);
  c[ImGuiCol_ScrollbarBg] = ImVec4(0, 0, 0, 0);
  c[ImGuiCol_ScrollbarGrab] = rgb(s.grab);
  c[ImGuiCol_ScrollbarGrabHovered] = rgb(s.grab_hovered);
  c[ImGuiCol_ScrollbarGrabActive] = rgb(s.grab_active);
  c[ImGuiCol_DockingEmptyBg] = rgb(s.empty);
  c[ImGuiCol_DockingPreview] = rgb(s.preview);
  c[ImGuiCol_ModalWindowDimBg] = rgb(s.shade);
}

void set_controls(ImVec4* c) {
  const Surfaces& s = surfaces();
  const ImVec4 accent = rgb(theme::kAccent);
  c[ImGuiCol_CheckMark] = c[ImGuiCol_SliderGrabActive] = accent;
  c[ImGuiCol_SliderGrab] = rgb(s.slider);
  c[ImGuiCol_Button] = rgb(s.button);
  c[ImGuiCol_ButtonHovered] = rgb(s.button_hovered);
  c[ImGuiCol_ButtonActive] = rgb(s.button_active);
  c[ImGuiCol_Header] = rgb(s.header);
  c[ImGuiCol_HeaderHovered] = rgb(s.header_hovered);
  c[ImGuiCol_HeaderActive] = rgb(s.header_active);
  c[ImGuiCol_Separator] = rgb(theme::kLine);
  c[ImGuiCol_SeparatorHovered] = c[ImGuiCol_SeparatorActive] = accent;
  c[ImGuiCol_ResizeGrip] = ImVec4(0, 0, 0, 0);
  c[ImGuiCol_ResizeGripHovered] = c[ImGuiCol_ResizeGripActive] = accent;
  c[ImGuiCol_Tab] = c[ImGuiCol_TabDimmed] = rgb(s.bar);
  c[ImGuiCol_TabHovered] = rgb(s.header_hovered);
  c[ImGuiCol_TabSelected] = c[ImGuiCol_TabDimmedSelected] = rgb(theme::kWindow);
  c[ImGuiCol_TabSelectedOverline] = accent;
  c[ImGuiCol_TabDimmedSelectedOverline] = rgb(s.tab_line);
  c[ImGuiCol_TableHeaderBg] = rgb(s.table_header);
  c[ImGuiCol_TableBorderStrong] = c[ImGuiCol_TableBorderLight] = rgb(s.table_border);
  c[ImGuiCol_TableRowBg] = ImVec4(0, 0, 0, 0);
  c[ImGuiCol_TableRowBgAlt] = rgb(s.row);
  c[ImGuiCol_TextSelectedBg] = rgb(s.selected);
  c[ImGuiCol_NavCursor] = accent;
  c[ImGuiCol_DragDropTarget] = rgb(theme::kCursor);
}

void set_sizes(ImGuiStyle& style) {
  style.WindowPadding = {8, 8};
  style.FramePadding = {8, 4};
  style.ItemSpacing = {8, 5};
  style.ItemInnerSpacing = {6, 4};
  style.CellPadding = {7, 3};
  style.WindowBorderSize = style.ChildBorderSize = style.PopupBorderSize = 1;
  style.FrameBorderSize = style.TabBorderSize = 0;
  style.WindowRounding = style.PopupRounding = 5;
  style.FrameRounding = style.GrabRounding = 4;
  style.ChildRounding = style.TabRounding = 3;
  style.ScrollbarRounding = 6;
  style.ScrollbarSize = 12;
  style.GrabMinSize = 10;
  style.TabBarOverlineSize = 2;
  style.DockingSeparatorSize = 3;
  style.SeparatorTextBorderSize = 1;
}

void set_plots(float scale) {
  const Surfaces& s = surfaces();
  ImPlotStyle& style = ImPlot::GetStyle();
  style = ImPlotStyle();
  style.PlotMinSize = {120 * scale, 84 * scale};
  style.PlotPadding = {8 * scale, 8 * scale};
  style.LegendPadding = {6 * scale, 6 * scale};
  style.MinorAlpha = 0.2f;
  style.Colors[ImPlotCol_PlotBg] = rgb(theme::kField);
  style.Colors[ImPlotCol_FrameBg] = ImVec4(0, 0, 0, 0);
  style.Colors[ImPlotCol_PlotBorder] = rgb(theme::kLine);
  style.Colors[ImPlotCol_LegendBg] = rgb(s.legend);
  style.Colors[ImPlotCol_LegendBorder] = rgb(theme::kLine);
  style.Colors[ImPlotCol_AxisGrid] = rgb(s.grid);
  style.Colors[ImPlotCol_AxisText] = rgb(theme::kDim);
}

}  // namespace

void load_font() {
  ImFontAtlas& fonts = *ImGui::GetIO().Fonts;
  std::error_code missing;
  if (std::filesystem::exists(kFontFile, missing)) {
    fonts.AddFontFromFileTTF(kFontFile, kFontSize);
  } else {
    fonts.AddFontDefaultVector();
  }
}

ThemeKind theme_kind() { return current; }

double contrast(ImU32 a, ImU32 b) {
  const auto luminance = [](ImU32 color) {
    const auto linear = [](float c) { return c <= 0.04045f ? c / 12.92f : std::pow((c + 0.055f) / 1.055f, 2.4f); };
    const ImVec4 c = rgb(color);
    return 0.2126 * static_cast<double>(linear(c.x)) + 0.7152 * static_cast<double>(linear(c.y)) +
           0.0722 * static_cast<double>(linear(c.z));
  };
  const auto [low, high] = std::minmax({luminance(a), luminance(b)});
  return (high + 0.05) / (low + 0.05);
}

void apply_theme(float scale, ThemeKind kind) {
  set_colors(kind);
  scale = std::clamp(scale, 0.5f, 4.f);
  ImGuiStyle style;
  set_surfaces(style.Colors);
  set_controls(style.Colors);
  set_sizes(style);
  style.ScaleAllSizes(scale);
  style.FontSizeBase = kFontSize;
  style.FontScaleMain = scale;
  ImGui::GetStyle() = style;
  set_plots(scale);
}

float scaled(float pixels) { return pixels * ImGui::GetStyle().FontScaleMain * ImGui::GetStyle().FontScaleDpi; }

}  // namespace ranklab::viz
