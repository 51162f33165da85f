#include "core/plan/layer_bytes.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/config/recompute_choice.h"
#include "core/runtime/shapes/built_rank.h"

namespace ranklab {

// Records the same model with these layers in a separate stage, so that everything that refers to layers (patterns of
// modules, lists with one entry per layer) means the same as in the run.
int64_t layer_bytes(const RunPlan& plan, const ShapeWorldMaker& make_world) {
  constexpr int kOwn = 1, kStages = 3;  // the layers before, these layers, and the head
  TrainConfig c = plan_on_shapes(plan).config;
  const bool together = recompute_policy(c).method == RecomputeMethod::kUniform;
  const int64_t layers = std::max<int64_t>(together ? c.recompute_num_layers : 1, 1);
  c.recompute_num_layers = std::min(c.recompute_num_layers, layers);
  c.parallel.world = c.parallel.world / plan.mesh.dims().pp * kStages;
  c.parallel.pp = kStages;
  c.threads_per_rank = 1;  // because a few more ranks are simulated
  c.cuda_graph = false;
  c.pipeline_schedule = "1f1b";
  c.virtual_stages = 1;
  c.pipeline_layout = strprintf("%ld,%ld,0", static_cast<long>(c.model.num_layers - layers), static_cast<long>(layers));
  c.micro_batch_size = plan.micro_batch_size;
  c.num_microbatches = 1;
  c.global_batch_size = plan.micro_batch_size * plan.dp();
  c.rampup_batch_size.clear();
  c.accumulation = Accumulation::kSequential;
  c.overlap_moe = false;
  c.documents = {};  // whole sequences, for which a layer keeps the most
  return record_step(resolve(c), make_world).of_pipeline_rank(kOwn).kept_bytes.front() / layers;
}

}  // namespace ranklab
