#include "core/config/one_rank.h"

namespace ranklab {

TrainConfig on_one_rank(TrainConfig c) {
  const TrainConfig plain;
  const RunPlan plan = resolve(c);
  c.parallel = {.world = 1, .tp = 1, .pp = 1};
  c.sep = 0;
  c.sequence_parallel.reset();
  c.tp_comm_overlap = false;
  c.context_split = plain.context_split;
  c.context_sizes.clear();
  c.pipeline_schedule = plain.pipeline_schedule;
  c.virtual_stages = 1;
  c.pipeline_layout.clear();
  c.moe_dispatcher = plain.moe_dispatcher;
  c.overlap_moe = false;
  c.overlap_shared_experts = false;
  c.delay_weight_grads = false;
  c.pad_experts = false;
  c.zero_stage = 0;
  c.use_distributed_optimizer = false;
  c.sharding_strategy = plain.sharding_strategy;
  c.overlap_grad_reduce = true;
  c.overlap_param_gather = false;
  c.grad_sync = plain.grad_sync;
  c.recompute_granularity = plain.recompute_granularity;
  c.recompute_num_layers = 0;
  c.diloco = plain.diloco;
  c.gpus_per_node = 0;
  c.inject.clear();
  c.micro_batch_size = 0;
  c.num_microbatches = plan.num_microbatches * plan.dp();
  return c;
}

bool loss_depends_on_dp(const TrainConfig& config) {
  const MoeConfig& moe = config.model.moe;
  return moe.enabled() && moe.balancing == LoadBalancing::kGlobalAuxLoss && moe.aux_loss_coeff != 0;
}

TrainConfig reference_layout(const TrainConfig& config) {
  const RunPlan plan = resolve(config);
  TrainConfig c = on_one_rank(config);
  if (config.diloco.enabled()) {
    c.diloco = config.diloco;
    c.diloco.replicas = plan.gradient_groups();
    c.parallel.world = c.parallel.dp = loss_depends_on_dp(config) ? plan.dp() : plan.gradient_groups();
    c.num_microbatches = plan.num_microbatches * plan.dp() / c.parallel.dp;
    return c;
  }
  if (!loss_depends_on_dp(config) || plan.dp() == 1) return c;
  c.num_microbatches = plan.num_microbatches;
  // In 16 bits the gradient of all tokens at once is rounded fewer times than the gradients of several ranks.
  const bool wide = plan.config.element_bytes() >= size_bytes(DType::kFloat32);
  if (plan.num_microbatches == 1 && config.model.moe.capacity_factor == 0 && wide) return c;
  c.parallel.world = c.parallel.dp = plan.dp();
  return c;
}

}  // namespace ranklab
