#include "cli/parity/parity_table.h"

#include <algorithm>

#include "core/sim/op_cost.h"

namespace ranklab {
namespace {

viz::ParityCell cell_of(const RankDistance& rank, bool wrong) {
  viz::ParityCell cell{.eps = rank.worst.eps,
                       .wrong = wrong,
                       .slice = rank.slice.text(),
                       .got = rank.worst.got,
                       .want = rank.worst.want};
  if (rank.worst.largest > 0 && rank.worst.place >= 0)
    cell.place = coordinates_text(rank.worst.place, rank.slice.shape);
  return cell;
}

}  // namespace

viz::ParityMap parity_table(const ParityResult& result) {
  viz::ParityMap map{.title = result.title,
                     .reference = result.reference,
                     .type = std::string(name(dtype_of(result.type))),
                     .same = !result.differs()};
  const auto ranks = static_cast<size_t>(result.mesh.world_size());
  for (size_t rank = 0; rank < ranks; ++rank) map.ranks.push_back(result.mesh.label(static_cast<int>(rank)));
  for (const TensorVerdict& one : result.comparison.verdicts) {
    viz::ParityRow row{.step = one.key.step,
                       .phase = std::string(name(one.key.phase)),
                       .name = one.key.name,
                       .kind = one.key.kind,
                       .allowed = one.tolerance};
    row.cells.resize(ranks);
    for (const auto& [rank, distance] : one.ranks)
      if (distance.fits)
        row.cells.at(static_cast<size_t>(rank)) = cell_of(distance, std::ranges::binary_search(one.wrong_ranks, rank));
    map.rows.push_back(std::move(row));
  }
  return map;
}

}  // namespace ranklab
