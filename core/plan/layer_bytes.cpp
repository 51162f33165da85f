#include "core/plan/layer_bytes.h"

namespace ranklab {
namespace {

// Bytes kept by the only stage of a model with this many layers.
int64_t kept_by(int64_t layers, const RunPlan& plan, const ShapeWorldMaker& make_world) {
  TrainConfig c = plan.config;
  c.model.num_layers = layers;
  c.model.mtp_num_layers = 0;
  c.parallel.world /= plan.mesh.dims().pp;
  c.parallel.pp = 1;
  c.pipeline_schedule = "1f1b";
  c.pipeline_layout.clear();
  c.virtual_stages = 1;
  c.micro_batch_size = plan.micro_batch_size;
  c.num_microbatches = 0;
  c.global_batch_size = plan.micro_batch_size * plan.dp();
  c.overlap_moe = false;
  return record_step(resolve(c), make_world).ranks.front().kept_bytes.front();
}

}  // namespace

int64_t layer_bytes(const RunPlan& plan, const ShapeWorldMaker& make_world) {
  const int64_t layers = plan.config.model.moe.enabled() ? plan.config.model.moe.first_dense_layers + 2 : 2;
  return kept_by(layers, plan, make_world) - kept_by(layers - 1, plan, make_world);
}

double paper_layer_bytes(const RunPlan& plan, Recompute granularity) {
  const ModelConfig& m = plan.config.model;
  const auto tokens = static_cast<double>(plan.micro_batch_size * m.seq_length);
  const auto hidden = static_cast<double>(m.hidden_size);
  const double t = plan.mesh.dims().tp, sbh = tokens * hidden;
  const double scores = granularity == Recompute::kNone ? 5.0 * static_cast<double>(m.num_attention_heads) *
                                                              static_cast<double>(m.seq_length) / hidden
                                                        : 0.0;
  const bool sharded = plan.sequence_parallel && plan.mesh.dims().tp > 1;
  if (granularity == Recompute::kFull) return 2 * sbh / (sharded ? t : 1);
  return sharded ? sbh / t * (34 + scores) : sbh * (10 + 24 / t + scores / t);
}

}  // namespace ranklab
