#include "viz/html/report/pictures.h"

#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "viz/html/report/html_text.h"
#include "viz/model/store/time_text.h"
#include "viz/model/tables/mesh_layout.h"

namespace ranklab::viz {
namespace {

constexpr double kPageWidth = 1120;
constexpr Rgba kBusy = 0x0072B200;

Rgba with_alpha(Rgba colour, double share) {
  return (colour & 0xFFFFFF00U) | static_cast<Rgba>(std::clamp<long>(std::lround(share * 255), 1, 254));
}

std::string rank_text(int global_rank) { return "r" + std::to_string(global_rank); }

std::string coordinates_text(const MeshTable& mesh, const MeshRank& rank) {
  std::string out;
  for (const auto& [axis, at] : rank.coordinates) {
    const bool part = axis != Axis::kWorld && axis < Axis::kDpCp && axis != Axis::kEdp;
    if (!part || std::find(mesh.axes.begin(), mesh.axes.end(), axis) == mesh.axes.end()) continue;
    out += (out.empty() ? "" : " ") + std::string(name(axis)) + std::to_string(at);
  }
  return out;
}

}  // namespace

std::string mesh_svg(const MeshTable& mesh, const BubbleReport& bubbles, const SvgPlace& place) {
  constexpr double kTile = 112, kHigh = 46, kGap = 6, kPlaneGap = 22;
  const MeshLayout layout = mesh_layout(mesh);
  const bool named = std::ranges::any_of(layout.planes, [](const std::string& plane) { return !plane.empty(); });
  const double head = named ? 20 : 2;
  SvgWriter svg(place);
  const double plane_width = layout.columns * (kTile + kGap) + kPlaneGap,
               plane_height = layout.rows * (kHigh + kGap) + head;
  const int across = std::max(1, static_cast<int>(kPageWidth / plane_width));
  double width = 0, height = 0;
  for (size_t r = 0; r < std::min(mesh.ranks.size(), kDrawnTiles); ++r) {
    const MeshTile tile = layout.tiles[r];
    const double left = tile.plane % across * plane_width, top = tile.plane / across * plane_height;
    const std::string& plane = layout.planes[static_cast<size_t>(tile.plane)];
    if (tile.row == 0 && tile.column == 0 && !plane.empty()) svg.text(left, top + 13, 11, kInk, plane);
    const double x = left + tile.column * (kTile + kGap), y = top + head + tile.row * (kHigh + kGap);
    const std::string coordinates = coordinates_text(mesh, mesh.ranks[r]);
    svg.rect(x, y, kTile, kHigh, kPaper, false, rank_text(mesh.ranks[r].global_rank) + " " + coordinates);
    if (r < bubbles.ranks.size()) {
      const double busy = bubbles.ranks[r].time.busy_share();
      svg.rect(x, y + kHigh - 5, kTile * std::clamp(busy, 0.0, 1.0), 5, kBusy | 0xFFU, false,
               format_percent(busy) + " busy");
      svg.right_text(x + kTile - 6, y + 16, 10, kInk, strprintf("%.0f %% busy", 100 * busy));
    }
    svg.text(x + 6, y + 16, 12, kInk, rank_text(mesh.ranks[r].global_rank));
    svg.text(x + 6, y + 33, 10, kInk, coordinates);
    width = std::max(width, x + kTile);
    height = std::max(height, y + kHigh);
  }
  return svg.document(width + 2, height + 2);
}

std::string memory_svg(const std::vector<RankMemory>& memory, const SvgPlace& place) {
  constexpr double kLeft = 48, kBar = 16, kStep = 22, kText = 90, kHead = 26;
  double most = 1;
  const size_t drawn = memory.size();
  for (size_t r = 0; r < drawn; ++r) most = std::max(most, memory[r].peak.total());
  SvgWriter svg(place);
  double left = kLeft;
  for (size_t c = 0; c < kMemoryCategories; ++c) {
    const auto category = static_cast<MemoryCategory>(c);
    if (std::none_of(memory.begin(), memory.end(), [&](const RankMemory& rank) { return rank.peak.bytes[c] > 0; }))
      continue;
    svg.rect(left, 4, 14, 10, colour(category), false, name(category));
    svg.text(left + 19, 13, 11, kInk, name(category));
    left += 40 + kCharacterWidth * static_cast<double>(name(category).size());
  }
  const double scale = (kPageWidth - kLeft - kText) / most;
  for (size_t r = 0; r < drawn; ++r) {
    const double y = kHead + static_cast<double>(r) * kStep;
    svg.text(4, y + 12, 11, kInk, rank_text(memory[r].global_rank));
    double x = kLeft;
    for (size_t c = 0; c < kMemoryCategories; ++c) {
      const double bytes = memory[r].peak.bytes[c];
      if (bytes <= 0) continue;
      const auto category = static_cast<MemoryCategory>(c);
      svg.rect(x, y, bytes * scale, kBar, colour(category), false,
               std::string(name(category)) + " " + human_bytes(bytes));
      x += bytes * scale;
    }
    svg.text(x + 6, y + 12, 11, kInk, bytes_text(memory[r].peak.total()));
  }
  return svg.document(kPageWidth, kHead + static_cast<double>(drawn) * kStep);
}

std::string zero_svg(const ZeroTable& table, const MeshTable& mesh, const SvgPlace& place) {
  constexpr double kLeft = 210, kHigh = 18, kHead = 22, kLongest = 30;
  const size_t ranks = std::min(mesh.ranks.size(), kDrawnShardRanks), rows = std::min(table.rows.size(), kDrawnBuckets);
  const double wide = std::min(64.0, (kPageWidth - kLeft) / static_cast<double>(std::max<size_t>(ranks, 1)));
  SvgWriter svg(place);
  for (size_t r = 0; r < ranks; ++r)
    svg.centred_text(kLeft + (static_cast<double>(r) + 0.5) * wide, 14, 11, kInk, rank_text(mesh.ranks[r].global_rank));
  for (size_t b = 0; b < rows; ++b) {
    const ZeroBucketRow& row = table.rows[b];
    const double y = kHead + static_cast<double>(b) * kHigh;
    std::string label = row.label;
    if (label.size() > kLongest) label = label.substr(0, static_cast<size_t>(kLongest) - 3) + "...";
    svg.text(4, y + 13, 11, kInk, label);
    for (size_t r = 0; r < std::min(ranks, row.cells.size()); ++r) {
      if (!row.cells[r].present) continue;
      const int shard = row.cells[r].shard;
      const double x = kLeft + static_cast<double>(r) * wide;
      const std::string words = row.shards > 1 ? strprintf("part %d of %d", shard + 1, row.shards) : "all of it";
      svg.rect(x, y, wide - 2, kHigh - 2,
               row.shards > 1 ? with_alpha(rank_colour(static_cast<size_t>(std::max(shard, 0))), 0.45) : kPaper, false,
               row.label + ": " + words);
      svg.centred_text(x + wide / 2 - 1, y + 13, 10, kInk,
                       row.shards > 1 ? strprintf("%d/%d", shard + 1, row.shards) : "all");
    }
  }
  return svg.document(kLeft + static_cast<double>(ranks) * wide + 4, kHead + static_cast<double>(rows) * kHigh + 2);
}

std::string expert_svg(const ExpertTable& table, const SvgPlace& place) {
  constexpr double kLeft = 80, kHigh = 20, kHead = 22;
  const auto experts = static_cast<size_t>(table.num_experts);
  const double wide = std::clamp((kPageWidth - kLeft) / static_cast<double>(std::max<size_t>(experts, 1)), 3.0, 44.0);
  const bool numbers = wide >= 30;
  SvgWriter svg(place);
  for (size_t e = 0; e < experts; e += numbers ? 1 : std::max<size_t>(1, static_cast<size_t>(40 / wide)))
    svg.centred_text(kLeft + (static_cast<double>(e) + 0.5) * wide, 14, 10, kInk, "e" + std::to_string(e));
  const size_t rows = std::min(table.totals.size(), std::max<size_t>(1, kDrawnCells / std::max<size_t>(experts, 1)));
  for (size_t i = 0; i < rows; ++i) {
    const LayerLoad& layer = table.totals[i];
    const double y = kHead + static_cast<double>(i) * kHigh;
    svg.text(4, y + 14, 11, kInk, "layer " + std::to_string(layer.layer));
    for (size_t e = 0; e < std::min(layer.tokens.size(), kDrawnCells); ++e) {
      const double ratio = layer.measures.ratio(layer.tokens[e]), x = kLeft + static_cast<double>(e) * wide;
      const bool dead = layer.tokens[e] == 0;
      // An even load gets a third of the strongest colour.
      svg.rect(
          x, y, wide - (wide > 8 ? 2 : 0.4), kHigh - 2, dead ? 0xB3261EFF : with_alpha(kBusy, std::min(ratio / 3, 1.0)),
          false,
          strprintf("layer %d, expert %zu: %.0f tokens, %.2f of an even load", layer.layer, e, layer.tokens[e], ratio));
      if (numbers)
        svg.centred_text(x + wide / 2 - 1, y + 13, 10, dead || ratio > 1.8 ? 0xFFFFFFFF : kInk,
                         strprintf("%.2f", ratio));
    }
  }
  return svg.document(kLeft + static_cast<double>(experts) * wide + 4, kHead + static_cast<double>(rows) * kHigh + 2);
}

}  // namespace ranklab::viz
