#include "core/plan/built_rank.h"

#include <utility>

#include "core/plan/shape_data.h"
#include "core/runtime/checkpoint/manager.h"
#include "core/runtime/engine.h"

namespace ranklab {

RuntimeComponents on_shapes(const RuntimeComponents& parts, std::shared_ptr<World> world) {
  RuntimeComponents out = parts;
  out.world = std::move(world);
  out.data_provider = make_shape_data(parts.data_provider);
  out.checkpoint_manager = no_checkpoints();
  return out;
}

void build_ranks(const RunPlan& plan, RuntimeComponents parts, const std::function<void(StepContext&)>& look) {
  RuntimeEngine engine(std::move(parts), plan_to_record(plan));
  engine.set_finale(look);
  engine.fit(0);
}

void build_rank(const RunPlan& plan, int global_rank, const ShapeWorldMaker& make_world,
                const std::function<void(StepContext&)>& look) {
  std::vector<int> stand_in(static_cast<size_t>(plan.mesh.world_size()), global_rank);
  build_ranks(plan, on_shapes(default_parts(), make_world(std::move(stand_in))), look);
}

}  // namespace ranklab
