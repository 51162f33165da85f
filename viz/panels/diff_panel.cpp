#include "viz/panels/diff_panel.h"

#include <imgui.h>

#include <cmath>

#include "core/base/text.h"
#include "viz/model/store/time_text.h"
#include "viz/panels/parts/theme.h"
#include "viz/panels/parts/widgets.h"

namespace ranklab::viz {
namespace {

std::string signed_percent(double share) {
  if (std::isinf(share)) return "new";
  if (std::isnan(share)) return "-";
  return strprintf("%+.2f %%", share * 100);
}

std::string count_text(double count) { return strprintf("%.6g", count); }

// Warm colours for slower or larger, green for faster or smaller; stronger for larger changes.
ImU32 change_color(double share) {
  if (share == 0 || std::isnan(share)) return theme::kDim;
  const float size = std::isinf(share) ? 1.f : std::min(1.f, 0.35f + static_cast<float>(std::abs(share)) * 2);
  return blend(theme::kText, share > 0 ? theme::kBad : theme::kGood, size);
}

}  // namespace

std::string DiffPanel::nothing_to_show(Workspace& workspace) {
  if (workspace.other() != nullptr && !workspace.store().empty()) return {};
  return "A second trace is compared here.\n\n./ranklab viz A --compare B\n\nor File > Open, \"as second trace\"";
}

void DiffPanel::draw(Workspace& workspace) {
  const TraceStore& a = workspace.store();
  const TraceStore& b = *workspace.other();
  const TraceDiff& diff = diff_.get({workspace.content(a.whole()), &b}, [&] { return diff_traces(a, b); });
  if (diff.same()) {
    colored_text(theme::kGood, "no difference");
  } else {
    colored_text(change_color(diff.makespan.delta_share()),
                 "makespan " + signed_percent(diff.makespan.delta_share()) + " from A to B");
  }
  ImGui::SameLine(0, scaled(16));
  if (ImGui::SmallButton("close B")) return workspace.close_other();
  ImGui::PushTextWrapPos(0);
  for (const std::string& note : diff.notes) colored_text(theme::kCursor, note);
  ImGui::PopTextWrapPos();
  strips(workspace);
  if (!ImGui::BeginTabBar("tables", ImGuiTabBarFlags_DrawSelectedOverline)) return;
  if (ImGui::BeginTabItem("Operations")) {
    ops(workspace, diff);
    ImGui::EndTabItem();
  }
  if (ImGui::BeginTabItem("Steps and memory")) {
    values(diff);
    ImGui::EndTabItem();
  }
  ImGui::EndTabBar();
}

void DiffPanel::strips(Workspace& workspace) {
  const TraceStore &a = workspace.store(), &b = *workspace.other();
  // The visible range of the timeline, shifted for B so that the same step begins at the same place.
  const TimeRange seen = workspace.camera.range();
  const int64_t moved = time_between(a, b, seen);
  const size_t ranks = a.ranks().size() + b.ranks().size();
  const float row = std::floor(
      std::clamp(ImGui::GetContentRegionAvail().y * 0.42f / static_cast<float>(ranks), scaled(4), scaled(16)));
  const auto& other =
      other_bubbles_.get({workspace.content(a.whole()), &b}, [&] { return find_bubbles(b, b.whole()); });
  const float width = ImGui::GetContentRegionAvail().x;
  dim_text(elided("A  " + a.source(), width));
  strip_.draw(a, workspace.bubbles_of_trace(), seen, row);
  dim_text(elided("B  " + b.source(), width));
  other_strip_.draw(b, other, {seen.begin_ns + moved, seen.end_ns + moved}, row);
}

void DiffPanel::ops(const Workspace& workspace, const TraceDiff& diff) {
  const TraceStore& store = workspace.store();
  if (!ImGui::BeginTable("ops", 9, ImGuiTableFlags_RowBg | ImGuiTableFlags_ScrollY | ImGuiTableFlags_SizingFixedFit))
    return;
  ImGui::TableSetupScrollFreeze(0, 1);
  const bool mean = diff.of_a_rank;
  for (const char* heading : {"operation", "count A", "count B", mean ? "A per rank" : "total A",
                              mean ? "B per rank" : "total B", "mean A", "mean B", "change", "change %"})
    ImGui::TableSetupColumn(heading);
  ImGui::TableHeadersRow();
  const auto time = [&](double ns) { return format_time(store, std::llround(ns)); };
  for (const OpDiff& op : diff.ops) {
    ImGui::TableNextColumn();
    text(op.name);
    const std::string cells[] = {count_text(op.a.count), count_text(op.b.count), time(op.a.total_ns),
                                 time(op.b.total_ns),    time(op.a.mean_ns()),   time(op.b.mean_ns())};
    for (const std::string& cell : cells) {
      ImGui::TableNextColumn();
      right_text(cell);
    }
    ImGui::PushStyleColor(ImGuiCol_Text, change_color(op.delta_share()));
    ImGui::TableNextColumn();
    right_text((op.delta_ns() > 0 ? "+" : "") + time(static_cast<double>(op.delta_ns())));
    ImGui::TableNextColumn();
    right_text(signed_percent(op.delta_share()));
    ImGui::PopStyleColor();
  }
  ImGui::EndTable();
}

void DiffPanel::values(const TraceDiff& diff) {
  if (!ImGui::BeginTable("values", 4, ImGuiTableFlags_RowBg | ImGuiTableFlags_ScrollY | ImGuiTableFlags_SizingFixedFit))
    return;
  ImGui::TableSetupScrollFreeze(0, 1);
  for (const char* heading : {"what", "A", "B", "change %"}) ImGui::TableSetupColumn(heading);
  ImGui::TableHeadersRow();
  const auto row = [](const ValueDiff& value, bool bytes) {
    ImGui::TableNextColumn();
    text(value.name);
    for (const double number : {value.a, value.b}) {
      ImGui::TableNextColumn();
      right_text(bytes ? human_bytes(number) : human_ns(number));
    }
    ImGui::TableNextColumn();
    ImGui::PushStyleColor(ImGuiCol_Text, change_color(value.delta_share()));
    right_text(signed_percent(value.delta_share()));
    ImGui::PopStyleColor();
  };
  row(diff.makespan, false);
  for (const ValueDiff& step : diff.step_ns) row(step, false);
  for (const ValueDiff& peak : diff.memory) row(peak, true);
  ImGui::EndTable();
}

}  // namespace ranklab::viz
