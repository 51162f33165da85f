#include "core/runtime/text/run_scorer.h"

#include <utility>

#include "core/sim/op_observer.h"

namespace ranklab {

bool works_on_text(const RankContext& ctx, const RunPlan& plan) {
  const bool parts_elsewhere = ctx.size(Axis::kEp) > 1 || ctx.size(Axis::kEtp) > 1 || plan.zero().parameters;
  return parts_elsewhere || ctx.coordinate(ctx.replica_axis()) == 0;
}

std::unique_ptr<TokenScorer> make_run_scorer(StepContext& context) {
  const int64_t seq_length = context.plan.config.model.seq_length;
  if (context.model.can_decode()) return make_cached_scorer(context.model, seq_length);
  return make_window_scorer([&context](const Batch& batch) { return run_logits(context, batch); }, context.ctx.device(),
                            context.plan.sequence_parallel ? context.ctx.size(Axis::kTp) : 1);
}

std::vector<int64_t> sample_of_run(StepContext& context, std::vector<int64_t> prompt) {
  const TrainConfig& c = context.plan.config;
  const NoCostScope free;
  context.model.set_training(false);
  return generate_tokens(*make_run_scorer(context), std::move(prompt),
                         {.tokens = c.sample_tokens,
                          .temperature = c.sample_temperature,
                          .seq_length = c.model.seq_length,
                          .seed = c.seed});
}

at::Tensor run_logits(StepContext& context, const Batch& batch) { return context.schedule->logits(context, batch); }

}  // namespace ranklab
