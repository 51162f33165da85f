#include "viz/panels/parts/area_totals.h"

#include <algorithm>

namespace ranklab::viz {
namespace {

AreaRow& row_of(AreaTotals& totals, Paint paint, std::string_view name, size_t ranks) {
  for (AreaRow& row : totals.rows)
    if (row.paint == paint && row.name == name) return row;
  totals.rows.push_back({paint, name, 0, 0, std::vector<int64_t>(ranks, 0)});
  return totals.rows.back();
}

void add_track(const TraceStore& store, size_t rank, const Track& track, AreaTotals& totals) {
  const Area& area = totals.area;
  const size_t ranks = area.last_rank - area.first_rank + 1;
  for (size_t i = track.first_ending_after(area.range.begin_ns); i < track.size(); ++i) {
    if (track.begin_ns[i] >= area.range.end_ns) break;
    const Paint paint = track.paint[i];
    const std::string_view kind = letters(paint).empty() ? store.name(EventRef{rank, track.event[i]}) : name(paint);
    AreaRow& row = row_of(totals, paint, kind, ranks);
    const int64_t inside =
        std::min(track.end_ns[i], area.range.end_ns) - std::max(track.begin_ns[i], area.range.begin_ns);
    ++row.count;
    row.total_ns += inside;
    row.of_rank_ns[rank - area.first_rank] += inside;
  }
}

}  // namespace

AreaTotals area_totals(const TraceStore& store, const Area& area) {
  AreaTotals totals{area, {}};
  totals.area.last_rank = std::min(area.last_rank, store.ranks().size() - 1);
  for (size_t rank = area.first_rank; rank <= totals.area.last_rank; ++rank)
    for (const Row& row : store.rank(rank).rows)
      for (const Track& track : row.tracks) add_track(store, rank, track, totals);
  std::stable_sort(totals.rows.begin(), totals.rows.end(),
                   [](const AreaRow& a, const AreaRow& b) { return a.total_ns > b.total_ns; });
  return totals;
}

}  // namespace ranklab::viz
