#include "core/plan/built_rank.h"

#include <utility>

#include "core/plan/shape_data.h"
#include "core/runtime/checkpoint_manager.h"
#include "core/runtime/engine.h"

namespace ranklab {

void build_rank(const RunPlan& plan, int global_rank, const ShapeWorldMaker& make_world,
                const std::function<void(StepContext&)>& look) {
  const RunPlan built = plan_to_record(plan);
  RuntimeComponents parts = default_parts();
  parts.world = make_world(std::vector<int>(static_cast<size_t>(built.mesh.world_size()), global_rank));
  parts.data_provider = make_shape_data();
  parts.checkpoint_manager = no_checkpoints();
  RuntimeEngine engine(std::move(parts), built);
  engine.set_finale(look);
  engine.fit(0);
}

}  // namespace ranklab
