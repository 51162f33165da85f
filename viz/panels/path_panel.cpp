#include "viz/panels/path_panel.h"

#include <imgui.h>

#include "core/base/text.h"
#include "viz/model/time_text.h"
#include "viz/panels/theme.h"
#include "viz/panels/widgets.h"

namespace ranklab::viz {
namespace {

// Re-timing the graph for every kind takes a while on large traces, so there it needs a click.
constexpr size_t kManyEvents = 200'000;

const char* kind_name(PathSegment::Kind kind) {
  switch (kind) {
    case PathSegment::Kind::kWork:
      return "work";
    case PathSegment::Kind::kTransfer:
      return "transfer";
    case PathSegment::Kind::kUnknown:
      break;
  }
  return "unknown";
}

std::string what_of(const TraceStore& store, const PathSegment& segment) {
  if (segment.events.empty()) return {};
  std::string words = store.text(segment.events.front());
  if (segment.events.size() > 1 && segment.kind == PathSegment::Kind::kWork)
    words += " ... " + store.text(segment.events.back());
  return words;
}

}  // namespace

std::string PathPanel::nothing_to_show(Workspace& workspace) {
  if (workspace.store().empty()) return "No trace is open: ./ranklab viz last";
  return {};
}

void PathPanel::draw(Workspace& workspace) {
  const TraceStore& store = workspace.store();
  const CriticalPath& path = workspace.critical_path();
  ImGui::AlignTextToFramePadding();
  ImGui::Text("%s", format_time(store, path.length_ns()).c_str());
  ImGui::SameLine();
  dim_text(strprintf("in %zu segments that touch: their lengths add up to the makespan", path.segments.size()));
  ImGui::SameLine(0, scaled(16));
  ImGui::Checkbox("show in the timeline", &workspace.show_critical_path);
  if (workspace.cursor.event && workspace.cursor.event->rank_index < path.slack_ns.size()) {
    const auto& of_rank = path.slack_ns[workspace.cursor.event->rank_index];
    const size_t event = workspace.cursor.event->event_index;
    const int64_t slack = event < of_rank.size() ? of_rank[event] : kNoTime;
    if (slack != kNoTime) {
      ImGui::SameLine(0, scaled(16));
      text(store.text(*workspace.cursor.event) + " could end " + format_time(store, slack) + " later");
    }
  }
  const ImVec2 space = ImGui::GetContentRegionAvail();
  if (ImGui::BeginChild("what if", {space.x * 0.5f, 0})) what_if(workspace);
  ImGui::EndChild();
  ImGui::SameLine();
  if (ImGui::BeginChild("segments")) segments(workspace, path);
  ImGui::EndChild();
}

void PathPanel::what_if(Workspace& workspace) {
  const TraceStore& store = workspace.store();
  if (store.clock() != TraceClock::kVirtual) return dim_text("what-if needs virtual time");
  if (store.num_events() > kManyEvents && !what_if_wanted_) {
    if (ImGui::Button("time the trace without each kind of work")) what_if_wanted_ = true;
    return;
  }
  const auto& rows = what_if_.get(workspace.content(store.whole()), [&] { return what_if_table(store); });
  if (!ImGui::BeginTable("gains", 5, ImGuiTableFlags_RowBg | ImGuiTableFlags_ScrollY | ImGuiTableFlags_SizingFixedFit))
    return;
  ImGui::TableSetupScrollFreeze(0, 1);
  for (const char* heading : {"if this were free", "on the path", "gain", "whole then", "then most is"})
    ImGui::TableSetupColumn(heading);
  ImGui::TableHeadersRow();
  for (const WhatIf& row : rows) {
    ImGui::TableNextColumn();
    text(row.what);
    ImGui::TableNextColumn();
    right_text(format_time(store, row.on_path_ns));
    ImGui::TableNextColumn();
    right_text(format_time(store, row.gain_ns));
    ImGui::TableNextColumn();
    right_text(format_time(store, row.makespan_ns));
    ImGui::TableNextColumn();
    dim_text(row.next_bottleneck);
  }
  ImGui::EndTable();
}

void PathPanel::segments(Workspace& workspace, const CriticalPath& path) {
  const TraceStore& store = workspace.store();
  if (!ImGui::BeginTable("path", 4,
                         ImGuiTableFlags_RowBg | ImGuiTableFlags_ScrollY | ImGuiTableFlags_SizingStretchProp))
    return;
  ImGui::TableSetupScrollFreeze(0, 1);
  for (const char* heading : {"at", "rank"}) ImGui::TableSetupColumn(heading);
  ImGui::TableSetupColumn("what", ImGuiTableColumnFlags_WidthStretch, 3);
  ImGui::TableSetupColumn("length");
  ImGui::TableHeadersRow();
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(path.segments.size()));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const PathSegment& segment = path.segments[static_cast<size_t>(i)];
      ImGui::PushID(i);
      ImGui::TableNextColumn();
      const std::string at = format_time(store, segment.range.begin_ns - store.range().begin_ns);
      if (ImGui::Selectable(at.c_str(), false, ImGuiSelectableFlags_SpanAllColumns)) {
        if (segment.events.empty())
          workspace.set_time(segment.range.begin_ns);
        else
          workspace.show_event(segment.events.front());
      }
      ImGui::TableNextColumn();
      text(strprintf("r%d", store.rank(segment.rank_index).global_rank));
      ImGui::TableNextColumn();
      text(what_of(store, segment));
      ImGui::SameLine();
      dim_text(kind_name(segment.kind));
      ImGui::TableNextColumn();
      right_text(format_time(store, segment.range.length_ns()));
      ImGui::PopID();
    }
  }
  ImGui::EndTable();
}

}  // namespace ranklab::viz
