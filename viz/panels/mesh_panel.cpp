#include "viz/panels/mesh_panel.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "viz/panels/theme.h"
#include "viz/panels/widgets.h"

namespace ranklab::viz {

std::string MeshPanel::nothing_to_show(Workspace& workspace) {
  return workspace.store().empty() ? "No trace is open: ./ranklab viz last" : "";
}

void MeshPanel::draw(Workspace& workspace) {
  const MeshTable& mesh = workspace.mesh();
  ImGui::AlignTextToFramePadding();
  dim_text("coloured by");
  ImGui::SameLine();
  ImGui::SetNextItemWidth(scaled(160));
  if (ImGui::BeginCombo("##metric", std::string(name(metric_)).c_str())) {
    for (int i = 0; i < static_cast<int>(RankMetric::kCount); ++i) {
      const auto metric = static_cast<RankMetric>(i);
      if (ImGui::Selectable(std::string(name(metric)).c_str(), metric == metric_)) metric_ = metric;
    }
    ImGui::EndCombo();
  }
  ImGui::SameLine(0, scaled(16));
  ImGui::BeginDisabled(!workspace.filter.active());
  if (ImGui::Button("show all ranks")) workspace.filter = {};
  ImGui::EndDisabled();
  const ImVec2 space = ImGui::GetContentRegionAvail();
  const bool beside = space.x > space.y * 1.3f;
  if (ImGui::BeginChild("ranks", beside ? ImVec2(space.x * 0.58f, 0) : ImVec2(0, space.y * 0.62f)))
    grid(workspace, mesh);
  ImGui::EndChild();
  if (beside) ImGui::SameLine();
  groups(workspace, mesh);
}

namespace {

int coordinates_of(const MeshTable& mesh, Axis axis) {
  int count = 0;
  for (size_t rank = 0; rank < mesh.ranks.size(); ++rank) count = std::max(count, mesh.coordinate(rank, axis) + 1);
  return count;
}

}  // namespace

// A line for each coordinate of the slowest axis (usually pp), the other ranks side by side.
void MeshPanel::grid(Workspace& workspace, const MeshTable& mesh) {
  const TraceStore& store = workspace.store();
  const auto& values =
      values_.get({workspace.content(), metric_}, [&] { return rank_metric(store, workspace.window(), metric_); });
  double low = 0, high = 0;
  for (const RankValue& one : values) high = std::max(high, one.value);
  const bool by_axis = !mesh.axes.empty();
  const Axis slowest = by_axis ? *std::max_element(mesh.axes.begin(), mesh.axes.end(),
                                                   [&](Axis a, Axis b) {
                                                     // The slowest axis is the one whose neighbours are farthest apart.
                                                     const auto stride = [&](Axis axis) {
                                                       for (const MeshGroup& group : mesh.groups)
                                                         if (group.axis == axis && group.global_ranks.size() > 1)
                                                           return group.global_ranks[1] - group.global_ranks[0];
                                                       return 0;
                                                     };
                                                     return stride(a) < stride(b);
                                                   })
                               : Axis::kWorld;
  // A line has the ranks of one coordinate; where that would be one rank, all are side by side. Tiles shrink to fit.
  const int lines = by_axis ? std::max(coordinates_of(mesh, slowest), 1) : 1;
  const bool one_line = static_cast<int>(mesh.ranks.size()) <= lines;
  const float gap = scaled(5),
              across = static_cast<float>(one_line ? mesh.ranks.size()
                                                   : (mesh.ranks.size() + static_cast<size_t>(lines) - 1) /
                                                         static_cast<size_t>(lines));
  const float width = (ImGui::GetContentRegionAvail().x - gap * (across - 1)) / across;
  const ImVec2 size(std::clamp(width, scaled(92), scaled(138)), scaled(52));
  int line = -2;
  for (size_t i = 0; i < mesh.ranks.size(); ++i) {
    const int coordinate = by_axis ? mesh.coordinate(i, slowest) : 0;
    const bool fits = ImGui::GetItemRectMax().x + gap + size.x < ImGui::GetWindowPos().x + ImGui::GetWindowWidth();
    if (i > 0 && fits && (one_line || coordinate == line)) ImGui::SameLine(0, gap);
    line = coordinate;
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImGui::PushID(static_cast<int>(i));
    if (ImGui::InvisibleButton("rank", size)) {
      const int rank = mesh.ranks[i].global_rank;
      workspace.filter =
          workspace.filter.only_rank == rank ? RankFilter{} : RankFilter{.only_rank = rank, .coordinates = {}};
    }
    const bool hovered = ImGui::IsItemHovered();
    ImGui::PopID();
    const double share = i < values.size() && high > low ? (values[i].value - low) / (high - low) : 0;
    const ImU32 fill = blend(theme::kTile, blend(theme::kTile, theme::kAccent, 0.55f), static_cast<float>(share));
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const ImVec2 end(at.x + size.x, at.y + size.y);
    draw.AddRectFilled(at, end, workspace.visible(i) ? fill : with_alpha(fill, 90), scaled(4));
    if (hovered) draw.AddRect(at, end, theme::kCursor, scaled(4));
    const std::string& label = store.rank(i).label;
    draw.PushClipRect(at, end, true);
    draw.AddText({at.x + scaled(7), at.y + scaled(5)}, theme::kText, label.c_str());
    if (i < values.size()) draw.AddText({at.x + scaled(7), at.y + scaled(24)}, theme::kText, values[i].text.c_str());
    draw.PopClipRect();
  }
}

void MeshPanel::groups(Workspace& workspace, const MeshTable& mesh) {
  if (!ImGui::BeginTable("groups", 3, ImGuiTableFlags_RowBg | ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_ScrollY))
    return;
  ImGui::TableSetupScrollFreeze(0, 1);
  for (const char* heading : {"axis", "size", "global ranks"}) ImGui::TableSetupColumn(heading);
  ImGui::TableHeadersRow();
  int id = 0;
  for (const MeshGroup& group : mesh.groups) {
    if (group.global_ranks.size() < 2) continue;
    ImGui::PushID(++id);
    ImGui::TableNextColumn();
    if (ImGui::Selectable(std::string(name(group.axis)).c_str(), false, ImGuiSelectableFlags_SpanAllColumns)) {
      // The group is identified by the other coordinates of its first member.
      RankFilter filter;
      const auto index = workspace.store().index_of_rank(group.global_ranks.front());
      for (const Axis axis : mesh.axes) {
        const bool product = axis == Axis::kWorld || axis >= Axis::kDpCp;
        if (index && axis != group.axis && group.axis != Axis::kWorld && !product)
          filter.coordinates.emplace_back(axis, mesh.coordinate(*index, axis));
      }
      workspace.filter = filter;
    }
    ImGui::TableNextColumn();
    text(strprintf("%zu", group.global_ranks.size()));
    ImGui::TableNextColumn();
    text(join(std::span<const int>(group.global_ranks), " "));
    ImGui::PopID();
  }
  ImGui::EndTable();
}

}  // namespace ranklab::viz
