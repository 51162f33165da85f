#include "viz/panels/timeline/layout.h"

#include <algorithm>
#include <cmath>

#include "viz/panels/parts/theme.h"
#include "viz/panels/parts/workspace.h"

namespace ranklab::viz {
namespace {

constexpr float kLabels = 158, kTotals = 268, kNarrow = 900, kRankGap = 7, kNoRows = 16;

bool is_compute(const Row& row) { return row.label == "compute"; }

constexpr float kAction = 26, kDetail = 15, kPhase = 12, kCalls = 11, kSmallest = 0.22f, kSmallestMain = 0.55f,
                kSmallestAlone = 0.2f, kLegibleAlone = 0.42f, kSmallGap = 3, kLegible = 0.8f, kTight = 0.6f;

// `tracks`: the number of the row's tracks that are shown.
float natural_height(const Row& row, size_t tracks) {
  if (is_compute(row)) return scaled(kAction) + scaled(kDetail) * static_cast<float>(tracks - 1);
  return scaled(row.label == "phase" ? kPhase : kCalls) * static_cast<float>(tracks);
}

// Modules and kernels are the deeper tracks of a compute row.
size_t shown_tracks(const Row& row, bool details) {
  return is_compute(row) && !details ? 1 : std::max<size_t>(row.tracks.size(), 1);
}

size_t main_row(const RankRows& rank) {
  const auto compute = std::find_if(rank.rows.begin(), rank.rows.end(), is_compute);
  return compute == rank.rows.end() ? 0 : static_cast<size_t>(compute - rank.rows.begin());
}

// Natural heights of the visible ranks' rows.
struct Heights {
  float main = 0, detailed = 0, others = 0;  // without and with details
  float empty = 0;                           // for ranks without rows
  size_t ranks = 0, rows = 0;
};
Heights natural_heights(Workspace& workspace) {
  Heights sum;
  const auto ranks = workspace.store().ranks();
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (!workspace.visible(r)) continue;
    ++sum.ranks;
    if (ranks[r].rows.empty()) sum.empty += scaled(kNoRows);
    for (size_t i = 0; i < ranks[r].rows.size(); ++i) {
      const Row& row = ranks[r].rows[i];
      const float height = natural_height(row, shown_tracks(row, false));
      ++sum.rows;
      if (i == main_row(ranks[r])) {
        sum.main += height;
        sum.detailed += natural_height(row, shown_tracks(row, true));
      } else {
        sum.others += height;
      }
    }
  }
  return sum;
}

// How the rows are fitted into the window.
struct RowScale {
  bool details = false;    // modules and kernels are shown
  bool only_main = false;  // rows of phases and calls are hidden
  float main = 1, others = 1, gap = 0;
};
// If space is scarce, these measures are taken in order: the rows of calls shrink next to details; details are hidden;
// gaps and the rows of calls shrink; the rows of calls are hidden; the panel scrolls. The rows of a rank that is shown
// alone keep everything.
RowScale fit_rows(const Heights& sum, float height, bool wants_details) {
  const auto room_with = [&](float gap) {
    return height - sum.empty - scaled(gap) * static_cast<float>(sum.ranks) - static_cast<float>(sum.rows);
  };
  RowScale scale{.gap = scaled(kRankGap)};
  const float room = room_with(kRankGap), all = sum.detailed + sum.others, plain = sum.main + sum.others;
  if (wants_details && (sum.ranks <= 1 || sum.detailed * kLegible + sum.others * kTight <= room)) {
    scale.details = true;
    scale.main = scale.others = all > 0 ? std::clamp(room / all, kSmallestMain, 2.f) : 1;
    if (scale.main >= kLegible || sum.others <= 0) return scale;
    scale.others = std::clamp((room - sum.detailed * kLegible) / sum.others, kTight, 1.f);
    scale.main = std::clamp((room - sum.others * scale.others) / sum.detailed, kSmallestMain, 2.f);
    return scale;
  }
  if (plain <= 0 || room >= plain * kSmallestMain) {
    scale.main = scale.others = plain > 0 ? std::min(room / plain, 2.f) : 1;
    return scale;
  }
  scale.gap = scaled(kSmallGap);
  const float tight = room_with(kSmallGap);
  scale.main = kSmallestMain;
  scale.others = sum.others > 0 ? (tight - sum.main * kSmallestMain) / sum.others : 1;
  if (scale.others >= kSmallest) return scale;
  scale.only_main = true;
  float alone = height - sum.empty - (scale.gap + 1) * static_cast<float>(sum.ranks);
  if (alone < sum.main * kLegibleAlone) {
    scale.gap = scaled(1);
    alone = height - sum.empty - (scale.gap + 1) * static_cast<float>(sum.ranks);
  }
  scale.main = std::clamp(alone / sum.main, kSmallestAlone, 1.f);
  return scale;
}

}  // namespace

const RowBox* TimelineLayout::row_at(float y) const {
  const auto at = std::upper_bound(rows.begin(), rows.end(), y, [](float v, const RowBox& row) { return v < row.top; });
  if (at == rows.begin() || y >= (at - 1)->bottom) return nullptr;
  return &*(at - 1);
}

RowBox::Part RowBox::part(size_t depth) const {
  const float weights = static_cast<float>(tracks) + (leads ? 1 : 0);
  const float unit = (bottom - top) / weights;
  if (leads && depth == 0) return {top, top + 2 * unit};
  const float from = top + unit * (static_cast<float>(depth) + (leads ? 1 : 0));
  return {from, from + unit};
}

size_t RowBox::depth_at(float y) const {
  size_t depth = 0;
  while (depth + 1 < tracks && y >= part(depth).bottom) ++depth;
  return depth;
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
  const RowScale scale = fit_rows(natural_heights(workspace), wanted_height, workspace.show_modules);
  float y = top;
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (!workspace.visible(r)) continue;
    const float first = y;
    y += scale.gap / 2;
    const size_t main = main_row(ranks[r]);
    for (size_t i = 0; i < ranks[r].rows.size(); ++i) {
      const Row& row = ranks[r].rows[i];
      if (scale.only_main && i != main) continue;
      const size_t tracks = shown_tracks(row, scale.details);
      const float height =
          std::max(2.f, std::floor(natural_height(row, tracks) * (i == main ? scale.main : scale.others)));
      out.rows.push_back({r, i, y, y + height, i == main, tracks, is_compute(row) && tracks > 1});
      y += height + 1;
    }
    if (ranks[r].rows.empty()) y += scaled(kNoRows);  // leaves space for its label
    y += scale.gap / 2;
    out.ranks.push_back({r, first, y});
  }
  out.top = top;
  out.bottom = y;
}

}  // namespace ranklab::viz
