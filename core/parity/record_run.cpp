#include "core/parity/record_run.h"

#include <utility>

#include "core/base/error.h"
#include "core/nn/scalar_type.h"
#include "core/parity/rank_recorder.h"
#include "core/parity/smaller_layouts.h"
#include "core/runtime/engine.h"
#include "core/runtime/wrapped_data.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

// The microbatches of a step from the last to the first.
class ReversedBatches final : public WrappedData {
 public:
  ReversedBatches(std::unique_ptr<RankData> inner, const RunPlan& plan) : WrappedData(std::move(inner)), plan_(plan) {}
  Batch train_batch(int64_t step, int64_t microbatch) override {
    return inner().train_batch(step, plan_.microbatches_of(step) - 1 - microbatch);
  }

 private:
  const RunPlan& plan_;
};

class RecordedMetrics final : public Hook {
 public:
  explicit RecordedMetrics(ParityRecord& record) : record_(record) {}
  void on_step_end(const StepMetrics& metrics) override {
    keep(metrics.step, ParityPhase::kLoss, "head", "loss", metrics.loss);
    keep(metrics.step, ParityPhase::kNorm, "grad_norm", "", metrics.grad_norm);
  }

 private:
  void keep(int64_t step, ParityPhase phase, const char* what, const char* kind, double value) {
    record_.tensors[{step, phase, what, kind}].push_back(
        {.rank = 0, .slice = whole_slice({1}), .value = at::tensor({value}, at::kDouble)});
  }
  ParityRecord& record_;
};

TrainConfig quiet(TrainConfig config) {
  config.trace = false;
  config.eval_interval = 0;
  config.sample_tokens = 0;
  config.sentinels = {};
  config.dump_modules.clear();
  config.dump_at.clear();
  config.log_dir.clear();
  config.tensorboard_dir.clear();
  config.save_dir.clear();
  config.save_interval = 0;
  return config;
}

}  // namespace

ParityRecord record_run(const TrainConfig& config, const MakeParityWorld& make_world, const ParityRunOptions& options) {
  const auto resolved = std::make_shared<const RunPlan>(resolve(quiet(config)));
  const RunPlan& plan = *resolved;
  ParityRecord record{.title = layout_flags(config),
                      .type = scalar_type(plan.config.element_dtype()),
                      .mesh = ParityMesh(plan.mesh),
                      .plan = resolved};
  ParityRecorders recorders(plan, options.perturb, options.order);
  const std::shared_ptr<World> world = make_world(plan);
  RuntimeComponents parts = options.components ? options.components(world, plan) : default_components(world, plan);
  parts.data_provider =
      wrap_data(parts.data_provider, [&recorders, reversed = options.order.reversed](
                                         std::unique_ptr<RankData> data, const RankContext& ctx, const RunPlan& own) {
        ParityRecorder& recorder = recorders.of(ctx.global_rank());
        if (reversed) data = std::make_unique<ReversedBatches>(std::move(data), own);
        return watched_data(std::move(data), recorder.batch_watches(), recorder.no_clock());
      });
  parts.optimizer_runtime = recorded_optimizer(parts.optimizer_runtime, recorders);
  RuntimeEngine engine(parts, plan);
  engine.add_hook(std::make_shared<RecordedMetrics>(record));
  int64_t left = options.steps;
  engine.set_stop_request([&left] { return --left <= 0; });
  try {
    engine.fit();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kEnvironment) throw;  // memory or threads ran out: it says nothing about the layout
    record.ended = error.what();
  }
  recorders.hand_over(record);
  return record;
}

}  // namespace ranklab
