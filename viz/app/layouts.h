// Arrangements of panels in the window. Thread rule: the thread of the ImGui context.
#pragma once
#include <imgui.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ranklab::viz {

struct LayoutPlaces {
  std::vector<std::pair<const char*, ImGuiID>> named;  // panel id -> dock node
  ImGuiID rest = 0;                                    // for every other panel
};

struct LayoutPreset {
  const char* name;   // "Pipeline"
  const char* about;  // for the menu
  LayoutPlaces (*build)(ImGuiID dockspace);
  std::span<const char* const> panels;  // ids of the panels that are open
  std::span<const char* const> front;   // ids of the panels that are in front of the others in their dock node
};

std::span<const LayoutPreset> layout_presets();
// Null if no preset has that name (letter case ignored).
const LayoutPreset* find_layout(const std::string& name);
// The name of a panel's window: its title and a stable id.
std::string window_name(const char* panel_id);
// Brings the panel's tab to the front. REQUIRES: its window has been drawn.
void select_tab(const char* panel_id);
// Arranges the dockspace, which has the given `size`.
void apply_layout(const LayoutPreset& preset, ImGuiID dockspace, ImVec2 size);
// Lets panels keep their shares of the dockspace when its size differs from that of the previous frame or the previous
// run. By default Dear ImGui changes only the central node, and a smaller window would leave nothing of it.
void keep_shares(ImGuiID dockspace, ImVec2 size);

}  // namespace ranklab::viz
