#include "viz/panels/mesh_panel.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "core/base/text.h"
#include "viz/panels/parts/theme.h"
#include "viz/panels/parts/widgets.h"

namespace ranklab::viz {

std::string MeshPanel::nothing_to_show(Workspace& workspace) {
  return workspace.store().empty() ? workspace.why_empty() : "";
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

// The places of the tiles on the screen: planes next to each other, wrapped into lines if they do not fit.
class TilePlaces {
 public:
  TilePlaces(const MeshLayout& mesh, ImVec2 from, float width) : mesh_(mesh), from_(from) {
    const auto planes = static_cast<int>(mesh.planes.size());
    across_ = std::clamp(planes_that_fit(width), 1, planes);
    const float lanes = static_cast<float>(across_);
    const float room = (width - plane_gap() * (lanes - 1)) / lanes;
    const float columns = static_cast<float>(mesh.columns);
    size_ = {std::clamp((room - gap_ * (columns - 1)) / columns, narrowest(), scaled(138)), scaled(44)};
    heading_ = planes > 1 ? ImGui::GetTextLineHeightWithSpacing() : 0;
  }

  ImVec2 size() const { return size_; }
  ImVec2 plane(int number) const {
    const float wide = static_cast<float>(mesh_.columns) * (size_.x + gap_) - gap_ + plane_gap();
    return {from_.x + static_cast<float>(number % across_) * wide,
            from_.y + static_cast<float>(number / across_) * plane_height()};
  }
  ImVec2 tile(size_t rank) const {
    const MeshTile& at = mesh_.tiles[rank];
    const ImVec2 begin = plane(at.plane);
    return {begin.x + static_cast<float>(at.column) * (size_.x + gap_),
            begin.y + heading_ + static_cast<float>(at.row) * (size_.y + gap_)};
  }
  float height() const {
    const auto planes = static_cast<int>(mesh_.planes.size());
    return plane_height() * static_cast<float>((planes + across_ - 1) / across_);
  }

 private:
  static float plane_gap() { return scaled(26); }
  static float narrowest() { return scaled(60); }
  int planes_that_fit(float width) const {
    const float columns = static_cast<float>(mesh_.columns);
    const float least = columns * (scaled(72) + gap_) - gap_ + plane_gap();
    return static_cast<int>((width + plane_gap()) / least);
  }
  float plane_height() const { return heading_ + static_cast<float>(mesh_.rows) * (size_.y + gap_) + scaled(4); }

  const MeshLayout& mesh_;
  ImVec2 from_, size_;
  float gap_ = scaled(10), heading_ = 0;
  int across_ = 1;
};

// Lines between neighbours: always inside a plane; between planes only for the rank under the mouse.
void draw_links(ImDrawList& draw, const MeshLayout& mesh, const TilePlaces& places, std::optional<size_t> hovered) {
  const ImVec2 half(places.size().x / 2, places.size().y / 2);
  for (const MeshLink& link : mesh.links) {
    const MeshTile &a = mesh.tiles[link.from], &b = mesh.tiles[link.to];
    const bool beside = a.plane == b.plane && std::abs(a.row - b.row) + std::abs(a.column - b.column) == 1;
    if (!beside && hovered != link.from && hovered != link.to) continue;
    const ImVec2 from = places.tile(link.from), to = places.tile(link.to);
    draw.AddLine({from.x + half.x, from.y + half.y}, {to.x + half.x, to.y + half.y}, im_color(axis_colour(link.axis)),
                 scaled(3));
  }
}

// The number of columns for a mesh with one axis: a power of 2, at most 8.
int columns_that_fit(float width) {
  int columns = 8;
  while (columns > 1 && static_cast<float>(columns) * scaled(70) > width) columns /= 2;
  return columns;
}

void axes_legend(const MeshLayout& mesh) {
  std::vector<Axis> shown;
  for (const MeshLink& link : mesh.links)
    if (std::find(shown.begin(), shown.end(), link.axis) == shown.end()) shown.push_back(link.axis);
  for (size_t i = 0; i < shown.size(); ++i) {
    const char* where = i == 0 ? " across" : i == 1 ? " down" : " between planes";
    const std::string words = std::string(name(shown[i])) + (shown.size() > 1 ? where : "");
    if (i > 0) same_line_if_fits(text_width(words) + scaled(34));
    swatch(im_color(axis_colour(shown[i])), words);
  }
}

}  // namespace

void MeshPanel::grid(Workspace& workspace, const MeshTable& mesh) {
  const TraceStore& store = workspace.store();
  const auto& values =
      values_.get({workspace.content(), metric_}, [&] { return rank_metric(store, workspace.window(), metric_); });
  const int widest = columns_that_fit(ImGui::GetContentRegionAvail().x);
  const auto& layout =
      layout_.get({workspace.content(store.whole()), widest}, [&] { return mesh_layout(mesh, widest); });
  double high = 0;
  for (const RankValue& one : values) high = std::max(high, one.value);
  axes_legend(layout);
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const TilePlaces places(layout, origin, ImGui::GetContentRegionAvail().x);
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  draw_links(draw, layout, places, hovered_);
  hovered_.reset();
  for (size_t plane = 0; plane < layout.planes.size(); ++plane)
    draw.AddText(places.plane(static_cast<int>(plane)), theme::kDim, layout.planes[plane].c_str());
  for (size_t i = 0; i < mesh.ranks.size(); ++i) {
    const double share = i < values.size() && high > 0 ? values[i].value / high : 0;
    tile(workspace, mesh, i, places.tile(i), places.size(), static_cast<float>(share),
         i < values.size() ? values[i].text : "");
  }
  ImGui::SetCursorScreenPos(origin);
  ImGui::Dummy({1, places.height()});
}

// `share`: of the largest value.
void MeshPanel::tile(Workspace& workspace, const MeshTable& mesh, size_t index, ImVec2 at, ImVec2 size, float share,
                     const std::string& value) {
  ImGui::SetCursorScreenPos(at);
  ImGui::PushID(static_cast<int>(index));
  if (ImGui::InvisibleButton("rank", size)) {
    const int rank = mesh.ranks[index].global_rank;
    workspace.filter =
        workspace.filter.only_rank == rank ? RankFilter{} : RankFilter{.only_rank = rank, .coordinates = {}};
  }
  const std::string& words = workspace.store().rank(index).label;
  if (ImGui::IsItemHovered()) hovered_ = index;
  tooltip(words.c_str());
  ImGui::PopID();
  const ImU32 fill = blend(theme::kTile, blend(theme::kTile, theme::kAccent, 0.55f), share);
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const ImVec2 end(at.x + size.x, at.y + size.y);
  draw.AddRectFilled(at, end, workspace.visible(index) ? fill : blend(theme::kWindow, fill, 0.35f), scaled(4));
  if (hovered_ == index) draw.AddRect(at, end, theme::kCursor, scaled(4));
  const bool fits = ImGui::CalcTextSize(words.c_str()).x + scaled(10) < size.x;
  const std::string shown = fits ? words : words.substr(0, words.find(' '));
  draw.PushClipRect(at, end, true);
  draw.AddText({at.x + scaled(6), at.y + scaled(4)}, theme::kText, shown.c_str());
  draw.AddText({at.x + scaled(6), at.y + scaled(22)}, theme::kText, value.c_str());
  draw.PopClipRect();
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
      // The filter identifies the group by the other coordinates of its first member.
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
