#include "core/runtime/run_scorer.h"

namespace ranklab {

bool works_on_text(const RankContext& ctx, const RunPlan& plan) {
  const bool parts_elsewhere = ctx.size(Axis::kEp) > 1 || ctx.size(Axis::kEtp) > 1 || plan.zero().parameters;
  return parts_elsewhere || ctx.coordinate(ctx.replica_axis()) == 0;
}

std::unique_ptr<TokenScorer> make_run_scorer(StepContext& context) {
  const int64_t seq_length = context.plan.config.model.seq_length;
  if (context.model.can_decode()) return make_cached_scorer(context.model, seq_length);
  return make_window_scorer([&context](const Batch& batch) { return run_logits(context, batch); }, seq_length,
                            context.ctx.device());
}

at::Tensor run_logits(StepContext& context, const Batch& batch) { return context.schedule->logits(context, batch); }

}  // namespace ranklab
