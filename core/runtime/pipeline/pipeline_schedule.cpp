#include "core/runtime/pipeline/pipeline_schedule.h"

#include <vector>

#include "core/runtime/pipeline/action_runner.h"
#include "core/runtime/pipeline/step_batches.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

BoundaryTensor boundary(StepContext& c, int64_t sequences, int64_t tokens, StageResult result) {
  BoundaryTensor boundary{{}, at::TensorOptions(c.model.registry().dtype()).device(c.ctx.device())};
  for (int part = 0; part < c.plan.schedule.chain_length - 1; ++part)
    boundary.shapes.push_back(c.model.boundary_shape(part, sequences, tokens, result));
  return boundary;
}

BoundaryTensor boundary_of_step(StepContext& c) {
  return boundary(c, c.plan.micro_batch_size, c.plan.config.model.seq_length, StageResult::kLoss);
}

class PipelineSchedule : public ScheduleStrategy {
 public:
  explicit PipelineSchedule(const Schedule& schedule)
      : schedule_(schedule),
        validation_(forward_only(schedule, schedule.num_microbatches)),
        single_(forward_only(schedule, 1)) {}

  std::string name() const override { return schedule_.name; }

  StepOutput run_step(StepContext& c) override {
    // While batches grow, there are fewer microbatches than in the plan.
    const Schedule& schedule = c.plan.ramp.grows() ? c.plan.schedule_of(c.step) : schedule_;
    std::vector<Batch> batches = load_batches(c, schedule, [&](int64_t i) { return c.data.train_batch(c.step, i); });
    const LossScaler* scaler = c.optimizer.loss_scaler();
    const double scale = scaler ? scaler->scale() : 1.0;
    const double loss_scale = scale * (1.0 / static_cast<double>(tokens_of_gradient(c, schedule_, batches)));
    for (Batch& batch : batches)
      batch.balance_scale = scale * c.plan.gradient_groups() / static_cast<double>(c.plan.tokens_of(c.step));
    StepOutput output;
    output.tokens = tokens_of_losses(c, schedule, batches);
    c.optimizer.begin_step(schedule.num_microbatches);
    const BoundaryTensor boundary = boundary_of_step(c);
    ActionRunner runner(c, schedule, schedule, batches, boundary,
                        {.loss_scale = loss_scale,
                         .scale = scale,
                         .replayed = ReplayedPass::of_step(c, replayed_),
                         .replayed_stages = ReplayedStages::of_step(c, schedule, batches, boundary, replayed_stages_)});
    runner.run();
    output.loss_sum = runner.loss_sum();
    if (replayed_) replayed_->settle();
    if (replayed_stages_) replayed_stages_->settle();
    return output;
  }

  StepOutput run_validation(StepContext& c, int64_t index) override {
    const at::NoGradGuard no_grad;
    const std::vector<Batch> batches =
        load_batches(c, validation_, [&](int64_t i) { return c.data.validation_batch(index, i); });
    StepOutput output;
    output.tokens = tokens_of_losses(c, validation_, batches);
    ActionRunner runner(c, schedule_, validation_, batches, boundary_of_step(c), {});
    runner.run();
    output.loss_sum = runner.loss_sum();
    return output;
  }

  at::Tensor logits(StepContext& c, const Batch& batch) override {
    const at::NoGradGuard no_grad;
    const int64_t sequences = batch.tokens_BS.size(0), seq = batch.tokens_BS.size(1);
    const std::vector<Batch> batches = {batch};
    ActionRunner runner(c, schedule_, single_, batches, boundary(c, sequences, seq, StageResult::kLogits),
                        {.result = StageResult::kLogits});
    runner.run();
    if (c.ctx.size(Axis::kPp) == 1) return runner.result();
    at::Tensor logits = runner.result();
    if (!logits.defined()) {
      const auto options = at::TensorOptions(c.model.registry().dtype()).device(c.ctx.device());
      logits = at::empty({sequences, seq, c.plan.config.model.vocab_size}, options);
    }
    return c.ctx.comm(Axis::kPp).broadcast(logits, schedule_.rank(schedule_.chain_length - 1));
  }

 private:
  Schedule schedule_, validation_, single_;
  std::unique_ptr<ReplayedPass> replayed_;
  std::unique_ptr<ReplayedStages> replayed_stages_;
};

}  // namespace

std::unique_ptr<ScheduleStrategy> make_pipeline_schedule(const Schedule& schedule) {
  return std::make_unique<PipelineSchedule>(schedule);
}

}  // namespace ranklab
