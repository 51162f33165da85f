#include "core/base/error.h"
#include "core/base/injected_bug.h"
#include "core/data/batch_source.h"
#include "core/model/transformer.h"
#include "core/runtime/checkpoint/manager.h"
#include "core/runtime/components.h"
#include "core/runtime/data_identity.h"
#include "core/runtime/pipeline/pipeline_schedule.h"
#include "core/runtime/provide.h"
#include "core/runtime/text/text_codec.h"
#include "core/runtime/training_data.h"

namespace ranklab {
namespace {

class TextData : public RankData {
 public:
  TextData(BatchSource source, int dp_rank, at::Device device)
      : source_(std::move(source)), dp_rank_(dp_rank), device_(device) {}

  Batch train_batch(int64_t step, int64_t microbatch) override {
    return to_batch(source_.train(step, microbatch, dp_rank_), step);
  }
  void seek(int64_t step, int64_t consumed_samples) override { source_.seek(step, consumed_samples); }
  bool has_validation() const override { return source_.has_validation(); }
  Batch validation_batch(int64_t index, int64_t microbatch) override {
    return to_batch(source_.validation(index, microbatch, dp_rank_), 0);
  }
  std::optional<int64_t> global_tokens_per_batch() const override {
    return source_.shape().global_batch_size() * source_.seq_length();
  }

 private:
  Batch to_batch(const TokenBatch& from, int64_t step) const {
    return {.tokens_BS = from.tokens_BS.to(device_),
            .targets_BS = from.targets_BS.to(device_),
            .first_sample = from.first_sample,
            .step = step};
  }
  BatchSource source_;
  int dp_rank_;
  at::Device device_;
};

// Reads the corpus once, before ranks start; ranks share it.
class TextDataProvider : public DataProvider {
 public:
  explicit TextDataProvider(TrainingData data) : data_(std::move(data)) {}

  std::unique_ptr<RankData> build_data(const RankContext& ctx, const RunPlan& plan) const override {
    const int dp_rank = ctx.coordinate(Axis::kDp);
    const bool own_order = injected(InjectedBug::kSamplerSeedPerRank);
    const at::Device device = ctx.device().is_meta() ? at::kCPU : ctx.device();  // for code that reads documents
    return std::make_unique<TextData>(make_batch_source(data_, plan, own_order ? static_cast<uint64_t>(dp_rank) : 0),
                                      dp_rank, device);
  }
  std::string describe() const override { return data_.describe(); }
  std::map<std::string, std::string> identity() const override { return data_identity(data_); }
  std::shared_ptr<TextCodec> text() const override { return data_.text; }

 private:
  TrainingData data_;
};

class PipelineSelector : public ScheduleSelector {
 public:
  std::unique_ptr<ScheduleStrategy> select(const RunPlan& plan) const override {
    return make_pipeline_schedule(plan.schedule);
  }
};

}  // namespace

std::shared_ptr<DataProvider> provide_training_data(TrainingData data) {
  return std::make_shared<TextDataProvider>(std::move(data));
}

RuntimeComponents default_components(std::shared_ptr<World> world, const RunPlan& plan) {
  auto data = provide_training_data(open_training_data(plan));
  const bool keeps = !plan.config.save_dir.empty() || !plan.config.load.empty();
  const std::string tokenizer = data->text() ? data->text()->tokenizer_json() : "";
  auto checkpoints = keeps ? make_checkpoint_manager(*world, plan, data->identity(), tokenizer) : no_checkpoints();
  RuntimeComponents parts = default_parts();
  parts.world = std::move(world);
  parts.data_provider = std::move(data);
  parts.checkpoint_manager = std::move(checkpoints);
  return parts;
}

RuntimeComponents default_parts() {
  return {.world = {},
          .model_provider = provide_model([](RankContext& ctx, const RunPlan& plan) {
            return make_transformer(plan.config.model, ctx, layered_options(ctx, plan));
          }),
          .data_provider = {},
          .optimizer_runtime = provide_optimizer(make_optimizer),
          .schedule_selector = std::make_shared<PipelineSelector>(),
          .checkpoint_manager = {}};
}

}  // namespace ranklab
