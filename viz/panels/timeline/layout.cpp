#include "viz/panels/timeline/layout.h"

#include <algorithm>
#include <cmath>

#include "viz/panels/theme.h"
#include "viz/panels/workspace.h"

namespace ranklab::viz {
namespace {

constexpr float kLabels = 158, kTotals = 268, kNarrow = 900, kRankGap = 7, kNoRows = 16;

bool is_compute(const Row& row) { return row.label == "compute"; }

float natural_height(const Row& row) {
  if (is_compute(row)) return scaled(26);
  return scaled(row.label == "phase" ? 12 : 11) * static_cast<float>(std::max<size_t>(row.tracks.size(), 1));
}

}  // namespace

const RowBox* TimelineLayout::row_at(float y) const {
  const auto at = std::upper_bound(rows.begin(), rows.end(), y, [](float v, const RowBox& row) { return v < row.top; });
  if (at == rows.begin() || y >= (at - 1)->bottom) return nullptr;
  return &*(at - 1);
}

const RankBox* TimelineLayout::rank_at(float y) const {
  for (const RankBox& box : ranks)
    if (y >= box.top && y < box.bottom) return &box;
  return nullptr;
}

const RankBox* TimelineLayout::box_of(size_t rank) const {
  for (const RankBox& box : ranks)
    if (box.rank == rank) return &box;
  return nullptr;
}

void lay_out_columns(TimelineLayout& out, const Camera& camera, ImVec2 origin, float width) {
  out.camera = camera;
  out.left = origin.x;
  out.right = origin.x + width;
  out.totals = width > scaled(kNarrow);
  out.plot_left = out.left + scaled(kLabels);
  out.plot_right = std::max(out.plot_left + 50, out.right - (out.totals ? scaled(kTotals) : scaled(4)));
}

void lay_out_rows(TimelineLayout& out, Workspace& workspace, float top, float wanted_height) {
  out.rows.clear();
  out.ranks.clear();
  const auto ranks = workspace.store().ranks();
  float needed = 0, empty = 0;
  size_t shown = 0;
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (!workspace.visible(r)) continue;
    ++shown;
    if (ranks[r].rows.empty()) empty += scaled(kNoRows);
    for (const Row& row : ranks[r].rows) needed += natural_height(row) + 1;
  }
  const float gaps = scaled(kRankGap) * static_cast<float>(shown) + empty;
  const float stretch = needed > 0 ? std::clamp((wanted_height - gaps) / needed, 0.62f, 2.f) : 1;
  float y = top;
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (!workspace.visible(r)) continue;
    const float first = y;
    y += scaled(kRankGap) / 2;
    const auto compute = std::find_if(ranks[r].rows.begin(), ranks[r].rows.end(), is_compute);
    const size_t main = compute == ranks[r].rows.end() ? 0 : static_cast<size_t>(compute - ranks[r].rows.begin());
    for (size_t i = 0; i < ranks[r].rows.size(); ++i) {
      const Row& row = ranks[r].rows[i];
      const float height = std::max(3.f, std::floor(natural_height(row) * stretch));
      out.rows.push_back({r, i, y, y + height, i == main});
      y += height + 1;
    }
    if (ranks[r].rows.empty()) y += scaled(kNoRows);  // space for its label
    y += scaled(kRankGap) / 2;
    out.ranks.push_back({r, first, y});
  }
  out.top = top;
  out.bottom = y;
}

}  // namespace ranklab::viz
