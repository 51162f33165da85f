#include "viz/app/layouts.h"

#include <imgui_internal.h>
#include <strings.h>

#include <cmath>

#include "viz/panels/panel.h"

namespace ranklab::viz {
namespace {

ImGuiID split(ImGuiID& node, ImGuiDir side, float share) {
  return ImGui::DockBuilderSplitNode(node, side, share, nullptr, &node);
}

LayoutPlaces build_pipeline(ImGuiID root) {
  const ImGuiID bottom = split(root, ImGuiDir_Down, 0.32f);
  ImGuiID right = bottom;
  const ImGuiID left = split(right, ImGuiDir_Left, 0.30f);
  const ImGuiID stage = split(root, ImGuiDir_Right, 0.5f);
  return {{{"timeline", root}, {"stage", stage}, {"details", left}, {"stepper", left}}, right};
}

LayoutPlaces build_stage(ImGuiID root) {
  ImGuiID bottom = split(root, ImGuiDir_Down, 0.36f);
  const ImGuiID right = split(bottom, ImGuiDir_Right, 0.3f);
  return {{{"stage", root}, {"timeline", bottom}}, right};
}

LayoutPlaces build_traffic(ImGuiID root) {
  const ImGuiID right = split(root, ImGuiDir_Right, 0.42f);
  ImGuiID below = right;
  const ImGuiID bottom = split(below, ImGuiDir_Down, 0.36f);
  const ImGuiID table = split(root, ImGuiDir_Down, 0.38f);
  return {{{"timeline", root}, {"traffic", below}, {"mesh", bottom}, {"path", bottom}}, table};
}

LayoutPlaces build_context(ImGuiID root) {
  const ImGuiID bottom = split(root, ImGuiDir_Down, 0.57f);
  ImGuiID left = bottom;
  const ImGuiID right = split(left, ImGuiDir_Right, 0.38f);
  return {{{"timeline", root}, {"attention", left}}, right};
}

LayoutPlaces build_memory(ImGuiID root) {
  const ImGuiID bottom = split(root, ImGuiDir_Down, 0.5f);
  ImGuiID left = bottom;
  const ImGuiID right = split(left, ImGuiDir_Right, 0.36f);
  return {{{"timeline", root}, {"zero", left}, {"memory", left}}, right};
}

LayoutPlaces build_precision(ImGuiID root) {
  const ImGuiID bottom = split(root, ImGuiDir_Down, 0.66f);
  const ImGuiID right = split(root, ImGuiDir_Right, 0.4f);
  return {{{"timeline", root}, {"precision", bottom}}, right};
}

LayoutPlaces build_lesson(ImGuiID root) {
  const ImGuiID right = split(root, ImGuiDir_Right, 0.36f);
  ImGuiID above = right;
  const ImGuiID below = split(above, ImGuiDir_Down, 0.42f);
  return {{{"timeline", root}, {"what_if", above}, {"traffic", above}}, below};
}

constexpr const char* kPipelineFront[] = {"details", "what_if", "stage", "timeline"};
constexpr const char* kPipeline[] = {"timeline", "stage",  "details", "stepper", "what_if",
                                     "path",     "curves", "comm",    "log"};
constexpr const char* kStageFront[] = {"details", "timeline", "stage"};
constexpr const char* kStage[] = {"stage", "timeline", "details", "memory", "zero"};
constexpr const char* kTrafficFront[] = {"comm", "mesh", "traffic", "timeline"};
constexpr const char* kTraffic[] = {"timeline", "comm", "details", "traffic", "mesh"};
constexpr const char* kContextFront[] = {"traffic", "attention", "timeline"};
constexpr const char* kContext[] = {"timeline", "attention", "traffic", "comm", "details"};
constexpr const char* kMemoryFront[] = {"curves", "memory", "timeline"};
constexpr const char* kMemory[] = {"timeline", "memory", "zero", "curves", "details"};
constexpr const char* kPrecisionFront[] = {"curves", "precision", "timeline"};
constexpr const char* kPrecision[] = {"timeline", "precision", "curves", "details"};
constexpr const char* kLessonFront[] = {"details", "what_if", "timeline"};
constexpr const char* kLesson[] = {"timeline", "what_if", "details", "stepper"};

const LayoutPreset kPresets[] = {
    {"Pipeline", "timeline and stage, the chosen event, schedules", build_pipeline, kPipeline, kPipelineFront},
    {"Stage", "the ranks as rooms, the timeline below", build_stage, kStage, kStageFront},
    {"Traffic", "timeline, who sends to whom, every call", build_traffic, kTraffic, kTrafficFront},
    {"Context", "timeline, attention of context-parallel ranks, their traffic", build_context, kContext, kContextFront},
    {"Memory", "timeline, bytes by category, curves", build_memory, kMemory, kMemoryFront},
    {"Precision", "timeline, quantized tensors, curves", build_precision, kPrecision, kPrecisionFront},
    {"Lesson", "timeline and schedules side by side", build_lesson, kLesson, kLessonFront},
};

void share_out(ImGuiDockNode& node, ImVec2 size) {
  if (!node.IsSplitNode()) return;
  ImGuiDockNode &first = *node.ChildNodes[0], &second = *node.ChildNodes[1];
  if (!first.IsVisible || !second.IsVisible) return share_out(first.IsVisible ? first : second, size);
  const ImGuiAxis axis = node.SplitAxis;
  const float room = size[axis] - ImGui::GetStyle().DockingSeparatorSize;
  const float had = first.SizeRef[axis] + second.SizeRef[axis];
  if (room <= 0 || had <= 0) return;
  for (ImGuiDockNode* child : {&first, &second}) {
    if (std::fabs(had - room) > 1) child->SizeRef[axis] *= room / had;
    ImVec2 part = size;
    part[axis] = child->SizeRef[axis];
    share_out(*child, part);
  }
}

}  // namespace

std::span<const LayoutPreset> layout_presets() { return kPresets; }

const LayoutPreset* find_layout(const std::string& name) {
  for (const LayoutPreset& preset : kPresets)
    if (::strcasecmp(preset.name, name.c_str()) == 0) return &preset;
  return nullptr;
}

std::string window_name(const char* panel_id) {
  const PanelRow* row = find_panel(panel_id);
  return std::string(row != nullptr ? row->title : panel_id) + "###" + panel_id;
}

void select_tab(const char* panel_id) {
  const ImGuiWindow* window = ImGui::FindWindowByName(window_name(panel_id).c_str());
  if (window == nullptr || window->DockNode == nullptr || window->DockNode->TabBar == nullptr) return;
  window->DockNode->TabBar->NextSelectedTabId = window->TabId;
}

void keep_shares(ImGuiID dockspace, ImVec2 size) {
  if (ImGuiDockNode* const node = ImGui::DockBuilderGetNode(dockspace); node != nullptr) share_out(*node, size);
}

void apply_layout(const LayoutPreset& preset, ImGuiID dockspace, ImVec2 size) {
  ImGui::DockBuilderRemoveNode(dockspace);
  ImGui::DockBuilderAddNode(dockspace, ImGuiDockNodeFlags_DockSpace);
  ImGui::DockBuilderSetNodeSize(dockspace, size);
  const LayoutPlaces places = preset.build(dockspace);
  for (const PanelRow& row : panel_rows()) {
    ImGuiID node = places.rest;
    for (const auto& [panel_id, place] : places.named)
      if (std::string_view(panel_id) == row.id) node = place;
    ImGui::DockBuilderDockWindow(window_name(row.id).c_str(), node);
  }
  ImGui::DockBuilderFinish(dockspace);
}

}  // namespace ranklab::viz
