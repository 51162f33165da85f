#include "core/runtime/provide.h"

#include "core/base/error.h"
#include "core/config/pipeline_layout.h"
#include "core/config/recompute_choice.h"
#include "core/nn/scalar_type.h"

namespace ranklab {
namespace {

QuantizationSettings quantization_settings(const RunPlan& plan) {
  const PrecisionConfig& p = plan.config.precision;
  return {.policy = plan.precision,
          .amax_history_len = p.amax_history_len,
          .amax_most_recent = p.amax_compute_algo == "most_recent",
          .layers_held_twice = holds_layers_twice(plan.schedule),
          .stats_interval = p.stats_interval,
          .dispatch = plan.precision ? plan.precision->recipe().dispatch : TensorPrecision{}};
}

std::vector<StageLayers> stages_of(const RunPlan& plan, int pp_rank) {
  std::vector<StageLayers> stages;
  for (const int stage : plan.schedule.stages_of(pp_rank)) {
    const int part = plan.schedule.part(stage);
    const int64_t first = first_layer(plan, part);
    stages.push_back({.first_layer = first,
                      .end_layer = first + plan.stage_layers[static_cast<size_t>(part)],
                      .is_first = plan.schedule.is_first(stage),
                      .is_last = plan.schedule.is_last(stage),
                      .looks_ahead = part == plan.mtp_stage,
                      .behind_mtp = plan.mtp_stage >= 0 && part > plan.mtp_stage});
  }
  return stages;
}

class FunctionModel : public ModelProvider {
 public:
  explicit FunctionModel(MakeModel make) : make_(std::move(make)) {}
  std::unique_ptr<CausalLm> build_model(RankContext& ctx, const RunPlan& plan) const override {
    return make_(ctx, plan);
  }

 private:
  MakeModel make_;
};

class FunctionBatches : public RankData {
 public:
  FunctionBatches(const MakeBatch& train, const MakeBatch& validation, const RankContext& ctx, const RunPlan& plan)
      : train_(train), validation_(validation), ctx_(ctx), plan_(plan) {}
  Batch train_batch(int64_t step, int64_t microbatch) override { return train_(ctx_, plan_, step, microbatch); }
  bool has_validation() const override { return validation_ != nullptr; }
  Batch validation_batch(int64_t index, int64_t microbatch) override {
    RANKLAB_CHECK(has_validation(), ErrorKind::kInternal, .where = "provide_data",
                  .what = "data from one function has no validation batches", .got = std::to_string(index),
                  .fix = "pass a second function, or derive from RankData");
    return validation_(ctx_, plan_, index, microbatch);
  }

 private:
  const MakeBatch &train_, &validation_;  // owned by the provider, which the engine keeps alive
  const RankContext& ctx_;
  const RunPlan& plan_;
};

class FunctionData : public DataProvider {
 public:
  FunctionData(std::string description, MakeBatch train, MakeBatch validation)
      : description_(std::move(description)), train_(std::move(train)), validation_(std::move(validation)) {}
  std::unique_ptr<RankData> build_data(const RankContext& ctx, const RunPlan& plan) const override {
    return std::make_unique<FunctionBatches>(train_, validation_, ctx, plan);
  }
  std::string describe() const override { return description_; }

 private:
  std::string description_;
  MakeBatch train_, validation_;
};

}  // namespace

std::shared_ptr<ModelProvider> provide_model(MakeModel make) {
  return std::make_shared<FunctionModel>(std::move(make));
}

std::shared_ptr<ModelProvider> provide_layers(MakeLayers make) {
  return provide_model([make = std::move(make)](RankContext& ctx, const RunPlan& plan) {
    return make_layered_model(plan.config.model, ctx, layered_options(ctx, plan),
                              [&](const StackContext& stack) { return make(stack, plan); });
  });
}

LayeredOptions layered_options(const RankContext& ctx, const RunPlan& plan) {
  return {.sequence_parallel = plan.sequence_parallel,
          .tp_comm_overlap = plan.config.tp_comm_overlap,
          .seed = plan.config.seed,
          .dtype = scalar_type(plan.config.element_dtype()),
          .moe_dispatcher = plan.config.moe_dispatcher,
          .overlap_shared_experts = plan.config.overlap_shared_experts,
          .delay_weight_grads = plan.config.delay_weight_grads,
          .pad_experts = plan.config.pads_experts(),
          .recompute = recompute_policy(plan.config),
          .context = plan.config.context_split,
          .quantization = quantization_settings(plan),
          .stages = stages_of(plan, ctx.coordinate(Axis::kPp)),
          .mtp_part = plan.mtp_stage,
          .values_later = plan.zero().parameters,
          .notes_max_logits = plan.config.qk_clip || plan.config.log_max_attention_logit};
}

std::shared_ptr<DataProvider> provide_data(std::string description, MakeBatch make) {
  return provide_data(std::move(description), std::move(make), nullptr);
}

std::shared_ptr<DataProvider> provide_data(std::string description, MakeBatch train, MakeBatch validation) {
  return std::make_shared<FunctionData>(std::move(description), std::move(train), std::move(validation));
}

}  // namespace ranklab
