#include "viz/panels/path_panel.h"

#include <imgui.h>

#include "core/base/text.h"
#include "viz/model/store/time_text.h"
#include "viz/panels/parts/theme.h"
#include "viz/panels/parts/widgets.h"

namespace ranklab::viz {
namespace {

// Re-timing the graph for every kind takes long on large traces, so it then needs a click.
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
  if (workspace.store().empty()) return workspace.why_empty();
  return {};
}

void PathPanel::draw(Workspace& workspace) {
  const TraceStore& store = workspace.store();
  const CriticalPath& path = workspace.critical_path();
  ImGui::AlignTextToFramePadding();
  ImGui::Text("%s", format_time(store, path.length_ns()).c_str());
  const std::string about =
      strprintf("in %zu segments that touch, by rank: their lengths add up to the makespan", path.segments.size());
  same_line_if_fits(text_width(about));
  dim_text(about);
  same_line_if_fits(text_width("show in the timeline") + 2 * ImGui::GetFrameHeight());
  ImGui::Checkbox("show in the timeline", &workspace.show_critical_path);
  if (workspace.cursor.event && workspace.cursor.event->rank_index < path.slack_ns.size()) {
    const auto& of_rank = path.slack_ns[workspace.cursor.event->rank_index];
    const size_t event = workspace.cursor.event->event_index;
    const int64_t slack = event < of_rank.size() ? of_rank[event] : kNoTime;
    if (slack != kNoTime) {
      const std::string later =
          store.text(*workspace.cursor.event) + " could end " + format_time(store, slack) + " later";
      same_line_if_fits(text_width(later));
      text(later);
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
  for (const char* heading : {"if this were free", "on the path", "gain", "new makespan", "next bottleneck"})
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

// One row for each stay of the path on a rank; an open one also shows its segments.
void PathPanel::segments(Workspace& workspace, const CriticalPath& path) {
  const TraceStore& store = workspace.store();
  const auto content = workspace.content(store.whole());
  const auto& stays = stays_.get(content, [&] {
    open_.clear();
    return stays_of(path);
  });
  if (!ImGui::BeginTable("path", 4,
                         ImGuiTableFlags_RowBg | ImGuiTableFlags_ScrollY | ImGuiTableFlags_SizingStretchProp))
    return;
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableSetupColumn("at", ImGuiTableColumnFlags_WidthStretch, 1.4f);
  ImGui::TableSetupColumn("rank", ImGuiTableColumnFlags_WidthStretch, 0.7f);
  ImGui::TableSetupColumn("what", ImGuiTableColumnFlags_WidthStretch, 3);
  ImGui::TableSetupColumn("length", ImGuiTableColumnFlags_WidthFixed);  // times are not cut off
  ImGui::TableHeadersRow();
  rows_.clear();
  for (size_t i = 0; i < stays.size(); ++i) {
    rows_.push_back({i, kStay});
    for (size_t at = stays[i].first; open_.contains(i) && at < stays[i].last; ++at) rows_.push_back({i, at});
  }
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(rows_.size()));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const auto [stay, segment] = rows_[static_cast<size_t>(i)];
      ImGui::PushID(i);
      if (segment == kStay)
        stay_row(workspace, path, stays[stay], stay);
      else
        segment_row(workspace, path.segments[segment]);
      ImGui::PopID();
    }
  }
  ImGui::EndTable();
}

void PathPanel::stay_row(Workspace& workspace, const CriticalPath& path, const PathStay& stay, size_t number) {
  const TraceStore& store = workspace.store();
  const size_t count = stay.last - stay.first;
  if (count == 1) return segment_row(workspace, path.segments[stay.first]);
  const bool open = open_.contains(number);
  ImGui::TableNextColumn();
  const std::string at = format_time(store, stay.range.begin_ns - store.range().begin_ns);
  if (ImGui::Selectable(((open ? "- " : "+ ") + at + "###stay").c_str(), false, ImGuiSelectableFlags_SpanAllColumns)) {
    if (open)
      open_.erase(number);
    else
      open_.insert(number);
    workspace.camera.show(stay.range, 0.05);
  }
  tooltip("a click shows this part of the path in the timeline and lists its segments");
  ImGui::TableNextColumn();
  text(strprintf("r%d", store.rank(stay.rank_index).global_rank));
  ImGui::TableNextColumn();
  text("work " + format_time(store, stay.work_ns) + ", transfers " + format_time(store, stay.transfer_ns));
  ImGui::SameLine();
  dim_text(strprintf("%zu segments", count));
  ImGui::TableNextColumn();
  right_text(format_time(store, stay.range.length_ns()));
}

void PathPanel::segment_row(Workspace& workspace, const PathSegment& segment) {
  const TraceStore& store = workspace.store();
  ImGui::TableNextColumn();
  const std::string at = "   " + format_time(store, segment.range.begin_ns - store.range().begin_ns);
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
}

}  // namespace ranklab::viz
