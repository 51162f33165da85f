#include "core/plan/planned_axes.h"

#include <algorithm>

#include "core/config/pipeline_layout.h"

namespace ranklab {

bool is_planned(Axis axis) { return axis == Axis::kCp || axis == Axis::kDpCp; }

int64_t key_value_bytes(const RunPlan& plan) {
  const ModelConfig& m = plan.config.model;
  const int64_t groups = std::max<int64_t>(m.query_groups() / plan.mesh.dims().tp, 1);
  const int64_t width = m.mla.enabled() ? m.mla.kv_lora_rank + m.mla.qk_pos_emb_head_dim : 2 * groups * m.head_dim();
  return plan.micro_batch_size * m.seq_length * width * plan.config.element_bytes();
}

void add_ring_attention(StepRecord& record, const RunPlan& plan, int cp) {
  if (cp == 1) return;
  const int64_t passes = cp - 1 + (2 * cp - 1), bytes = key_value_bytes(plan);
  for (RankRecord& rank : record.ranks) {
    auto& calls = rank.traffic.calls;
    // Weights are also replicated over cp.
    if (auto dp = calls.extract({Axis::kDp, Verb::kAllReduce})) {
      dp.key().first = Axis::kDpCp;
      calls.insert(std::move(dp));
    }
    int64_t layers = 0;
    for (const int stage : plan.schedule.stages_of(rank.pp_rank))
      layers += plan.stage_layers[static_cast<size_t>(plan.schedule.part(stage))];
    const int64_t sent = layers * plan.num_microbatches / plan.schedule.num_chains() * passes;
    calls[{Axis::kCp, Verb::kSend}] = {.calls = sent, .logical_bytes = sent * bytes, .ring_bytes = sent * bytes};
  }
}

}  // namespace ranklab
