#include "viz/panels/details_panel.h"

#include <imgui.h>

#include "core/base/text.h"
#include "viz/model/store/event_details.h"
#include "viz/model/store/selection.h"
#include "viz/model/store/time_text.h"
#include "viz/panels/parts/theme.h"
#include "viz/panels/parts/widgets.h"

namespace ranklab::viz {

std::string DetailsPanel::nothing_to_show(Workspace& workspace) {
  if (workspace.store().empty()) return workspace.why_empty();
  if (workspace.cursor.event || workspace.area) return {};
  return "Click a block, or drag over the timeline to select time and ranks.";
}

void DetailsPanel::draw(Workspace& workspace) {
  if (workspace.area) {
    area(workspace);
  } else if (workspace.cursor.event) {
    event(workspace, *workspace.cursor.event);
  }
}

void DetailsPanel::event(Workspace& workspace, EventRef ref) {
  const TraceStore& store = workspace.store();
  swatch(im_color(colour(paint_of(store.event(ref), store.name(ref)))), store.text(ref));
  ImGui::SameLine();
  dim_text(selection_text(store, ref));
  ImGui::SameLine(0, scaled(14));
  if (ImGui::SmallButton("previous")) {
    if (const auto other = store.previous_on_row(ref)) workspace.show_event(*other);
  }
  ImGui::SameLine(0, 3);
  if (ImGui::SmallButton("next")) {
    if (const auto other = store.next_on_row(ref)) workspace.show_event(*other);
  }
  if (!ImGui::BeginTable("fields", 3, ImGuiTableFlags_RowBg | ImGuiTableFlags_SizingFixedFit)) return;
  ImGui::TableSetupColumn("key");
  ImGui::TableSetupColumn("value", ImGuiTableColumnFlags_WidthStretch);
  ImGui::TableSetupColumn("source");
  std::vector<Detail> details = event_details(store, ref);
  // On the critical path the slack is zero.
  const CriticalPath& path = workspace.critical_path();
  if (ref.rank_index < path.slack_ns.size() && ref.event_index < path.slack_ns[ref.rank_index].size()) {
    const int64_t slack = path.slack_ns[ref.rank_index][ref.event_index];
    if (slack != kNoTime)
      details.insert(
          details.end() - 1,
          {"slack", slack == 0 ? "none: on the critical path" : format_time(store, slack) + " until the step is later",
           "model"});
  }
  for (const Detail& wait : waits(workspace, ref)) details.insert(details.end() - 1, wait);
  for (const Detail& detail : details) {
    ImGui::TableNextColumn();
    dim_text(detail.key);
    ImGui::TableNextColumn();
    text(detail.value);
    ImGui::TableNextColumn();
    colored_text(theme::kFaint, detail.source);
  }
  ImGui::EndTable();
}

// The ranks and events at the other ends of the timeline's arrows.
std::vector<Detail> DetailsPanel::waits(Workspace& workspace, EventRef ref) {
  const TraceStore& store = workspace.store();
  std::string before, after;
  for (const Dependency& arrow : workspace.dependencies_of(ref)) {
    std::string& words = arrow.incoming ? before : after;
    if (!words.empty()) words += ", ";
    words += selection_text(store, arrow.incoming ? arrow.from : arrow.to);
  }
  std::vector<Detail> out;
  if (!before.empty()) out.push_back({"waits for", before, ""});
  if (!after.empty()) out.push_back({"waited for by", after, ""});
  return out;
}

void DetailsPanel::area(Workspace& workspace) {
  const TraceStore& store = workspace.store();
  const AreaTotals& totals = totals_.get({workspace.content(store.whole()), *workspace.area},
                                         [&] { return area_totals(store, *workspace.area); });
  const Area& part = totals.area;
  ImGui::Text("%s", format_time(store, part.range.length_ns()).c_str());
  ImGui::SameLine();
  dim_text(
      "from " + format_time(store, part.range.begin_ns - store.range().begin_ns) +
      strprintf(", ranks %d to %d", store.rank(part.first_rank).global_rank, store.rank(part.last_rank).global_rank));
  const size_t ranks = part.last_rank - part.first_rank + 1;
  const int columns = 4 + static_cast<int>(std::min<size_t>(ranks, 64));
  if (!ImGui::BeginTable("totals", columns,
                         ImGuiTableFlags_RowBg | ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_ScrollX))
    return;
  for (const char* heading : {"kind", "count", "total", "share"}) ImGui::TableSetupColumn(heading);
  for (int r = 0; r < columns - 4; ++r)
    ImGui::TableSetupColumn(strprintf("r%d", store.rank(part.first_rank + static_cast<size_t>(r)).global_rank).c_str());
  ImGui::TableHeadersRow();
  const double whole = static_cast<double>(part.range.length_ns()) * static_cast<double>(ranks);
  for (const AreaRow& row : totals.rows) {
    ImGui::TableNextColumn();
    swatch(im_color(colour(row.paint)), row.name);
    ImGui::TableNextColumn();
    right_text(strprintf("%lld", static_cast<long long>(row.count)));
    ImGui::TableNextColumn();
    right_text(format_time(store, row.total_ns));
    ImGui::TableNextColumn();
    right_text(format_percent(static_cast<double>(row.total_ns) / whole));
    for (int r = 0; r < columns - 4; ++r) {
      ImGui::TableNextColumn();
      dim_text(format_time(store, row.of_rank_ns[static_cast<size_t>(r)]));
    }
  }
  ImGui::EndTable();
}

}  // namespace ranklab::viz
