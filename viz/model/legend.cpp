#include "viz/model/legend.h"

#include <algorithm>

namespace ranklab::viz {

std::vector<LegendEntry> legend_of(const TraceStore& store) {
  std::array<bool, kPaints> seen{};
  for (const RankRows& rank : store.ranks())
    for (const Row& row : rank.rows)
      for (const Track& track : row.tracks)
        for (const Paint paint : track.paint) seen[static_cast<size_t>(paint)] = true;
  return legend_of(seen);
}

std::vector<LegendEntry> legend_of(const std::array<bool, kPaints>& drawn) {
  std::vector<LegendEntry> legend;
  for (size_t p = 0; p < kPaints; ++p) {
    if (!drawn[p]) continue;
    const auto paint = static_cast<Paint>(p);
    const auto same = std::find_if(legend.begin(), legend.end(),
                                   [&](const LegendEntry& entry) { return entry.colour == colour(paint); });
    if (same == legend.end())
      legend.push_back({colour(paint), std::string(name(paint))});
    else
      same->words += ", " + std::string(name(paint));
  }
  return legend;
}

}  // namespace ranklab::viz
