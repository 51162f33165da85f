#include "core/runtime/shapes/built_rank.h"

#include <ATen/ops/empty.h>

#include <optional>
#include <utility>

#include "core/runtime/checkpoint/manager.h"
#include "core/runtime/components.h"
#include "core/runtime/document_data.h"
#include "core/runtime/engine.h"

namespace ranklab {
namespace {

class ShapeData final : public RankData {
 public:
  // Sample numbers are not needed: they only select dropout masks, whose shapes and costs are all the same.
  ShapeData(const RankContext& ctx, const RunPlan& plan, std::optional<int64_t> global_tokens,
            std::unique_ptr<RankData> documents)
      : tokens_BS_(at::empty({plan.micro_batch_size, plan.config.model.seq_length},
                             at::TensorOptions(at::kLong).device(ctx.device()))),
        global_tokens_(global_tokens),
        documents_(std::move(documents)),
        positions_restart_(plan.config.documents.reset_position_ids) {}

  Batch train_batch(int64_t step, int64_t microbatch) override {
    Batch batch = {.tokens_BS = at::empty_like(tokens_BS_), .targets_BS = at::empty_like(tokens_BS_), .step = step};
    batch.documents = documents(step, microbatch);
    return batch;
  }
  bool has_validation() const override { return false; }
  Batch validation_batch(int64_t, int64_t microbatch) override { return train_batch(0, microbatch); }
  std::optional<int64_t> global_tokens_per_batch() const override { return global_tokens_; }
  bool has_tokens() const override { return false; }
  bool marks_documents() const override { return documents_ != nullptr || positions_restart_; }

 private:
  std::shared_ptr<const Documents> documents(int64_t step, int64_t microbatch) {
    if (!marks_documents()) return nullptr;
    auto shapes = std::make_shared<Documents>(Documents{.starts = {}, .separate = false});
    if (documents_ != nullptr) {
      const std::shared_ptr<const Documents> marked = documents_->train_batch(step, microbatch).documents;
      if (marked == nullptr) return nullptr;
      *shapes = *marked;
    }
    if (positions_restart_ || shapes->position_BS.defined()) shapes->position_BS = at::empty_like(tokens_BS_);
    if (shapes->segment_BS.defined()) shapes->segment_BS = at::empty_like(tokens_BS_);
    return shapes;
  }

  at::Tensor tokens_BS_;
  std::optional<int64_t> global_tokens_;
  std::unique_ptr<RankData> documents_;  // provides the documents in batches; null: attention spans whole sequences
  bool positions_restart_;               // in each document; the places do not affect the cost
};

class ShapeDataProvider final : public DataProvider {
 public:
  explicit ShapeDataProvider(std::shared_ptr<DataProvider> like) : like_(std::move(like)) {}
  std::unique_ptr<RankData> build_data(const RankContext& ctx, const RunPlan& plan) const override {
    if (like_ == nullptr) return std::make_unique<ShapeData>(ctx, plan, plan.tokens_per_step(), nullptr);
    RunPlan whole = plan;
    // Without the ramp of a shorter first step (core/plan/record_step.cpp): the second step has the run's own batches.
    whole.ramp = {};
    std::unique_ptr<RankData> data = with_documents(like_->build_data(ctx, whole), plan.config.documents);
    const std::optional<int64_t> tokens = data->global_tokens_per_batch();
    if (!plan.config.documents.reset_attention_mask) data.reset();
    return std::make_unique<ShapeData>(ctx, plan, tokens, std::move(data));
  }
  std::string describe() const override { return "shapes"; }

 private:
  std::shared_ptr<DataProvider> like_;
};

}  // namespace

RunPlan plan_on_shapes(RunPlan plan) {
  TrainConfig& c = plan.config;
  // Simulated ranks, the default.
  const TrainConfig simulated;
  c.backend = simulated.backend;
  c.device = simulated.device;
  c.virtual_time = simulated.virtual_time;
  // The other software drops probabilities inside its fused attention; this project would compute attention in blocks
  // for that.
  if (plan.of_other_software()) c.model.attention_dropout = 0;
  plan.ramp = {};  // uses the final batch size
  plan.ramp_schedules.clear();
  c.eval_interval = 0;
  c.sample_tokens = 0;
  c.save_dir.clear();
  c.load.clear();
  c.check_gradient_types = false;
  c.trace = false;
  return plan;
}

RuntimeComponents on_shapes(RuntimeComponents parts, std::shared_ptr<World> world) {
  parts.world = std::move(world);
  parts.data_provider = std::make_shared<ShapeDataProvider>(std::move(parts.data_provider));
  parts.checkpoint_manager = no_checkpoints();
  return parts;
}

void build_ranks(const RunPlan& plan, RuntimeComponents parts, const std::function<void(StepContext&)>& look) {
  RuntimeEngine engine(std::move(parts), plan_on_shapes(plan));
  engine.set_finale(look);
  engine.fit(0);
}

void build_rank(const RunPlan& plan, int global_rank, const ShapeWorldMaker& make_world,
                const std::function<void(StepContext&)>& look) {
  std::vector<int> stand_in(static_cast<size_t>(plan.mesh.world_size()), global_rank);
  build_ranks(plan, on_shapes(default_parts(), make_world(std::move(stand_in))), look);
}

}  // namespace ranklab
