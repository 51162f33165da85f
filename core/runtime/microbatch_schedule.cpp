#include "core/runtime/microbatch_schedule.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/scalar_tensor.h>

#include <vector>

#include "core/base/error.h"

namespace ranklab {
namespace {

int64_t count_targets(const at::Tensor& targets_BS) { return targets_BS.ne(-100).sum().item<int64_t>(); }

// A span on the compute lane in virtual and wall time.
class Span {
 public:
  Span(RankContext& ctx, const char* name) : ctx_(ctx) {
    if (!ctx_.tracer().enabled()) return;
    event_.kind = EventKind::kCompute;
    event_.name = ctx_.tracer().intern(name);
    event_.virtual_begin_ns = ctx_.clock().now_ns();
    event_.wall_begin_ns = wall_now_ns();
  }
  ~Span() {
    if (!ctx_.tracer().enabled()) return;
    event_.virtual_end_ns = ctx_.clock().now_ns();
    event_.wall_end_ns = wall_now_ns();
    ctx_.tracer().record(event_);
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  RankContext& ctx_;
  Event event_;
};

class MicrobatchSchedule : public ScheduleStrategy {
 public:
  std::string name() const override { return "no pipeline"; }

  StepOutput run_step(StepContext& c) override {
    const std::vector<Batch> batches = load(c);
    StepOutput output;
    for (const Batch& batch : batches) output.tokens += local_tokens(c, batch);
    const double scale = 1.0 / static_cast<double>(global_tokens(c, output.tokens));
    c.optimizer.begin_step(static_cast<int64_t>(batches.size()));
    for (size_t i = 0; i < batches.size(); ++i) {
      const auto microbatch = static_cast<int64_t>(i);
      c.ctx.tracer().set_microbatch(static_cast<int>(i));
      c.optimizer.begin_microbatch(microbatch);
      at::Tensor loss;
      {
        const Span span(c.ctx, "F");
        loss = c.model.loss_sum(batches[i]);
      }
      {
        const Span span(c.ctx, "BW");
        (loss * scale).backward();
      }
      c.optimizer.end_microbatch(microbatch);
      const NoCostScope free;
      output.loss_sum += loss.item<double>();
    }
    c.ctx.tracer().set_microbatch(-1);
    return output;
  }

  StepOutput run_validation(StepContext& c, int64_t index) override {
    const at::NoGradGuard no_grad;
    StepOutput output;
    for (int64_t i = 0; i < c.plan.num_microbatches; ++i) {
      const Batch batch = c.data.validation_batch(index, i);
      output.loss_sum += c.model.loss_sum(batch).item<double>();
      output.tokens += local_tokens(c, batch);
    }
    return output;
  }

 private:
  static std::vector<Batch> load(StepContext& c) {
    const NoCostScope free;
    std::vector<Batch> batches;
    for (int64_t i = 0; i < c.plan.num_microbatches; ++i) batches.push_back(c.data.train_batch(c.step, i));
    return batches;
  }

  static int64_t local_tokens(StepContext& c, const Batch& batch) {
    if (c.data.global_tokens_per_batch()) return batch.targets_BS.numel();
    const NoCostScope free;
    return count_targets(batch.targets_BS);
  }

  // Losses are divided by the tokens of the whole global batch, not averaged per rank: ranks with fewer tokens then
  // weigh less.
  static int64_t global_tokens(StepContext& c, int64_t local) {
    if (const auto known = c.data.global_tokens_per_batch()) return *known;
    const at::Tensor count = at::scalar_tensor(local, at::TensorOptions(at::kLong).device(c.ctx.device()));
    const int64_t total = c.ctx.comm(Axis::kDp).all_reduce(count).item<int64_t>();
    RANKLAB_CHECK(total > 0, ErrorKind::kInvalidArgument, .where = "step " + std::to_string(c.step),
                  .what = "no token of the global batch has a target", .got = "0",
                  .want = "at least one target that is not -100");
    return total;
  }
};

}  // namespace

std::unique_ptr<ScheduleStrategy> make_microbatch_schedule() { return std::make_unique<MicrobatchSchedule>(); }

}  // namespace ranklab
