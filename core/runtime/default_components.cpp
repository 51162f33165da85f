#include "core/base/error.h"
#include "core/config/pipeline_layout.h"
#include "core/config/recompute_choice.h"
#include "core/config/state_types.h"
#include "core/data/batch_source.h"
#include "core/model/transformer.h"
#include "core/nn/scalar_type.h"
#include "core/runtime/checkpoint_manager.h"
#include "core/runtime/components.h"
#include "core/runtime/data_identity.h"
#include "core/runtime/pipeline_schedule.h"
#include "core/runtime/provide.h"
#include "core/runtime/training_data.h"

namespace ranklab {
namespace {

QuantizationSettings quantization_settings(const RunPlan& plan) {
  const PrecisionConfig& p = plan.config.precision;
  return {.policy = plan.precision,
          .amax_history_len = p.amax_history_len,
          .amax_most_recent = p.amax_compute_algo == "most_recent",
          .stats_interval = p.stats_interval,
          .dispatch = plan.precision ? plan.precision->recipe().dispatch : TensorPrecision{}};
}

class TransformerProvider : public ModelProvider {
 public:
  std::unique_ptr<CausalLm> build_model(RankContext& ctx, const RunPlan& plan) const override {
    const auto dtype = scalar_type(plan.config.element_dtype());
    auto model = make_transformer(plan.config.model, ctx,
                                  {.sequence_parallel = plan.sequence_parallel,
                                   .seed = plan.config.seed,
                                   .dtype = dtype,
                                   .moe_dispatcher = plan.config.moe_dispatcher,
                                   .recompute = recompute_policy(plan.config),
                                   .quantization = quantization_settings(plan),
                                   .stages = stages_of(plan, ctx.coordinate(Axis::kPp)),
                                   .values_later = plan.zero().parameters});
    for (Parameter* parameter : model->registry().parameters()) {
      std::vector<int> holders = pipeline_holders(plan, parameter->name);
      if (holders.size() > 1) parameter->pipeline_ranks = std::move(holders);
    }
    return model;
  }

 private:
  static std::vector<StageLayers> stages_of(const RunPlan& plan, int pp_rank) {
    std::vector<StageLayers> stages;
    for (const int stage : plan.schedule.stages_of(pp_rank)) {
      const int part = plan.schedule.part(stage);
      const int64_t first = first_layer(plan, part);
      stages.push_back({.first_layer = first,
                        .end_layer = first + plan.stage_layers[static_cast<size_t>(part)],
                        .is_first = plan.schedule.is_first(stage),
                        .is_last = plan.schedule.is_last(stage)});
    }
    return stages;
  }
};

class TextData : public RankData {
 public:
  TextData(BatchSource source, int dp_rank, at::Device device)
      : source_(std::move(source)), dp_rank_(dp_rank), device_(device) {}

  Batch train_batch(int64_t step, int64_t microbatch) override {
    return to_batch(source_.train(step, microbatch, dp_rank_), step);
  }
  void seek(int64_t step, int64_t consumed_samples) override { source_.seek(step, consumed_samples); }
  bool has_validation() const override { return source_.dataset().samples(Split::kValidation) > 0; }
  Batch validation_batch(int64_t index, int64_t microbatch) override {
    return to_batch(source_.validation(index, microbatch, dp_rank_), 0);
  }
  std::optional<int64_t> global_tokens_per_batch() const override {
    return source_.shape().global_batch_size() * source_.dataset().seq_length();
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
  explicit TextDataProvider(const RunPlan& plan) : data_(open_training_data(plan)) {}

  std::unique_ptr<RankData> build_data(const RankContext& ctx, const RunPlan& plan) const override {
    return std::make_unique<TextData>(make_batch_source(data_, plan), ctx.coordinate(Axis::kDp), ctx.device());
  }
  std::string describe() const override {
    return data_.source + ", " + std::to_string(data_.tokens->size()) + " byte tokens, " +
           std::to_string(data_.dataset->samples(Split::kTrain)) + " training sequences";
  }
  std::map<std::string, std::string> identity() const override { return data_identity(*data_.tokens, *data_.dataset); }

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

std::unique_ptr<Optimizer> make_optimizer(std::vector<Parameter*> parameters, const RunPlan& plan) {
  const TrainConfig& c = plan.config;
  const StateTypes types = state_types(plan);
  if (c.optimizer == OptimizerKind::kSgd) {
    return make_sgd(std::move(parameters), {.momentum = c.sgd_momentum,
                                            .weight_decay = c.weight_decay,
                                            .cpu_offload = c.optimizer_cpu_offload,
                                            .masters = types.has_masters()});
  }
  return make_adamw(std::move(parameters), {.beta1 = c.adam_beta1,
                                            .beta2 = c.adam_beta2,
                                            .epsilon = c.adam_eps,
                                            .weight_decay = c.weight_decay,
                                            .cpu_offload = c.optimizer_cpu_offload,
                                            .masters = types.has_masters(),
                                            .exp_avg_type = scalar_type(types.exp_avg),
                                            .exp_avg_sq_type = scalar_type(types.exp_avg_sq)});
}

RuntimeComponents default_components(std::shared_ptr<World> world, const RunPlan& plan) {
  auto data = std::make_shared<TextDataProvider>(plan);
  const bool keeps = !plan.config.save_dir.empty() || !plan.config.load.empty();
  auto checkpoints = keeps ? make_checkpoint_manager(*world, plan, data->identity()) : no_checkpoints();
  RuntimeComponents parts = default_parts();
  parts.world = std::move(world);
  parts.data_provider = std::move(data);
  parts.checkpoint_manager = std::move(checkpoints);
  return parts;
}

RuntimeComponents default_parts() {
  return {.world = {},
          .model_provider = std::make_shared<TransformerProvider>(),
          .data_provider = {},
          .optimizer_runtime = provide_optimizer(make_optimizer),
          .schedule_selector = std::make_shared<PipelineSelector>(),
          .checkpoint_manager = {}};
}

}  // namespace ranklab
