#include "core/plan/rank_pieces.h"

#include "core/plan/built_rank.h"

namespace ranklab {

std::vector<SnapshotPiece> rank_pieces(const RunPlan& plan, int global_rank, const ShapeWorldMaker& make_world) {
  std::vector<SnapshotPiece> pieces;
  build_rank(plan, global_rank, make_world, [&](StepContext& context) { pieces = snapshot_pieces(context); });
  for (SnapshotPiece& piece : pieces) piece.elements.reset();  // they belong to the rank's thread
  return pieces;
}

}  // namespace ranklab
