#include "core/runtime/shapes/rank_pieces.h"

#include <utility>

#include "core/runtime/checkpoint/snapshot.h"
#include "core/runtime/shapes/built_rank.h"

namespace ranklab {

std::vector<NamedSlice> rank_pieces(const RunPlan& plan, int global_rank, const ShapeWorldMaker& make_world) {
  std::vector<NamedSlice> pieces;
  build_rank(plan, global_rank, make_world, [&](StepContext& context) {
    for (SnapshotPiece& piece : snapshot_pieces(context)) pieces.push_back(std::move(piece.place));
  });
  return pieces;
}

}  // namespace ranklab
