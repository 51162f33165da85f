#include "core/parity/record_run.h"

#include <utility>

#include "core/base/error.h"
#include "core/nn/scalar_type.h"
#include "core/parity/rank_recorder.h"
#include "core/parity/smaller_layouts.h"
#include "core/runtime/engine.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

// The microbatches of a step from the last to the first.
class ReversedBatches final : public RankData {
 public:
  ReversedBatches(std::unique_ptr<RankData> inner, const RunPlan& plan) : inner_(std::move(inner)), plan_(plan) {}
  Batch train_batch(int64_t step, int64_t microbatch) override {
    return inner_->train_batch(step, plan_.microbatches_of(step) - 1 - microbatch);
  }
  void seek(int64_t step, int64_t consumed_samples) override { inner_->seek(step, consumed_samples); }
  bool has_validation() const override { return inner_->has_validation(); }
  Batch validation_batch(int64_t index, int64_t microbatch) override {
    return inner_->validation_batch(index, microbatch);
  }
  std::optional<int64_t> global_tokens_per_batch() const override { return inner_->global_tokens_per_batch(); }
  bool marks_documents() const override { return inner_->marks_documents(); }
  bool has_tokens() const override { return inner_->has_tokens(); }

 private:
  std::unique_ptr<RankData> inner_;
  const RunPlan& plan_;
};

// Wraps data so that its batches are recorded as they arrive.
class RecordedData final : public DataProvider {
 public:
  RecordedData(std::shared_ptr<DataProvider> inner, ParityRecorders& recorders, bool reversed)
      : inner_(std::move(inner)), recorders_(recorders), reversed_(reversed) {}
  std::unique_ptr<RankData> build_data(const RankContext& ctx, const RunPlan& plan) const override {
    ParityRecorder& recorder = recorders_.of(ctx.global_rank());
    std::unique_ptr<RankData> data = inner_->build_data(ctx, plan);
    if (reversed_) data = std::make_unique<ReversedBatches>(std::move(data), plan);
    return watched_data(std::move(data), recorder.batch_watches(), recorder.no_clock());
  }
  std::string describe() const override { return inner_->describe(); }
  std::map<std::string, std::string> identity() const override { return inner_->identity(); }
  std::shared_ptr<TextCodec> text() const override { return inner_->text(); }

 private:
  std::shared_ptr<DataProvider> inner_;
  ParityRecorders& recorders_;
  bool reversed_;
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
  parts.data_provider = std::make_shared<RecordedData>(parts.data_provider, recorders, options.order.reversed);
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
