#include "viz/panels/theme.h"

#include <implot.h>

#include <algorithm>
#include <filesystem>

namespace ranklab::viz {
namespace {

constexpr float kFontSize = 15;
constexpr const char* kFontFile = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf";

ImVec4 rgb(ImU32 color) { return ImGui::ColorConvertU32ToFloat4(color); }
ImVec4 grey(int r, int g, int b, int a = 255) { return rgb(IM_COL32(r, g, b, a)); }

void set_surfaces(ImVec4* c) {
  c[ImGuiCol_Text] = rgb(theme::kText);
  c[ImGuiCol_TextDisabled] = rgb(theme::kDim);
  c[ImGuiCol_WindowBg] = rgb(theme::kWindow);
  c[ImGuiCol_ChildBg] = ImVec4(0, 0, 0, 0);
  c[ImGuiCol_PopupBg] = grey(30, 34, 41, 250);
  c[ImGuiCol_Border] = rgb(theme::kLine);
  c[ImGuiCol_BorderShadow] = ImVec4(0, 0, 0, 0);
  c[ImGuiCol_FrameBg] = grey(38, 43, 51);
  c[ImGuiCol_FrameBgHovered] = grey(49, 56, 66);
  c[ImGuiCol_FrameBgActive] = grey(57, 65, 77);
  c[ImGuiCol_TitleBg] = c[ImGuiCol_TitleBgActive] = c[ImGuiCol_TitleBgCollapsed] = grey(18, 20, 24);
  c[ImGuiCol_MenuBarBg] = grey(18, 20, 24);
  c[ImGuiCol_ScrollbarBg] = ImVec4(0, 0, 0, 0);
  c[ImGuiCol_ScrollbarGrab] = grey(58, 65, 76);
  c[ImGuiCol_ScrollbarGrabHovered] = grey(75, 84, 98);
  c[ImGuiCol_ScrollbarGrabActive] = grey(92, 103, 120);
  c[ImGuiCol_DockingEmptyBg] = grey(14, 16, 19);
  c[ImGuiCol_DockingPreview] = grey(92, 168, 230, 110);
  c[ImGuiCol_ModalWindowDimBg] = grey(0, 0, 0, 110);
}

void set_controls(ImVec4* c) {
  const ImVec4 accent = rgb(theme::kAccent);
  c[ImGuiCol_CheckMark] = c[ImGuiCol_SliderGrabActive] = accent;
  c[ImGuiCol_SliderGrab] = grey(78, 141, 193, 150);
  c[ImGuiCol_Button] = grey(42, 48, 57);
  c[ImGuiCol_ButtonHovered] = grey(56, 64, 76);
  c[ImGuiCol_ButtonActive] = grey(66, 96, 124);
  c[ImGuiCol_Header] = grey(44, 62, 79);
  c[ImGuiCol_HeaderHovered] = grey(50, 72, 93);
  c[ImGuiCol_HeaderActive] = grey(58, 86, 112);
  c[ImGuiCol_Separator] = rgb(theme::kLine);
  c[ImGuiCol_SeparatorHovered] = c[ImGuiCol_SeparatorActive] = accent;
  c[ImGuiCol_ResizeGrip] = ImVec4(0, 0, 0, 0);
  c[ImGuiCol_ResizeGripHovered] = c[ImGuiCol_ResizeGripActive] = accent;
  c[ImGuiCol_Tab] = c[ImGuiCol_TabDimmed] = grey(18, 20, 24);
  c[ImGuiCol_TabHovered] = grey(50, 72, 93);
  c[ImGuiCol_TabSelected] = c[ImGuiCol_TabDimmedSelected] = rgb(theme::kWindow);
  c[ImGuiCol_TabSelectedOverline] = accent;
  c[ImGuiCol_TabDimmedSelectedOverline] = grey(70, 80, 94);
  c[ImGuiCol_TableHeaderBg] = grey(31, 35, 42);
  c[ImGuiCol_TableBorderStrong] = c[ImGuiCol_TableBorderLight] = grey(40, 45, 53);
  c[ImGuiCol_TableRowBg] = ImVec4(0, 0, 0, 0);
  c[ImGuiCol_TableRowBgAlt] = grey(255, 255, 255, 7);
  c[ImGuiCol_TextSelectedBg] = grey(92, 168, 230, 90);
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
  ImPlotStyle& style = ImPlot::GetStyle();
  style = ImPlotStyle();
  style.PlotPadding = {8 * scale, 8 * scale};
  style.LegendPadding = {6 * scale, 6 * scale};
  style.MinorAlpha = 0.2f;
  style.Colors[ImPlotCol_PlotBg] = rgb(theme::kField);
  style.Colors[ImPlotCol_FrameBg] = ImVec4(0, 0, 0, 0);
  style.Colors[ImPlotCol_PlotBorder] = rgb(theme::kLine);
  style.Colors[ImPlotCol_LegendBg] = grey(30, 34, 41, 220);
  style.Colors[ImPlotCol_LegendBorder] = rgb(theme::kLine);
  style.Colors[ImPlotCol_AxisGrid] = grey(255, 255, 255, 40);
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

void apply_theme(float scale) {
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
