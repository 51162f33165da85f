#include "core/plan/shape_data.h"

#include <ATen/ops/empty.h>

#include <optional>
#include <utility>

namespace ranklab {
namespace {

class ShapeData final : public RankData {
 public:
  ShapeData(const RankContext& ctx, const RunPlan& plan, std::optional<int64_t> global_tokens)
      : tokens_BS_(at::empty({plan.micro_batch_size, plan.config.model.seq_length},
                             at::TensorOptions(at::kLong).device(ctx.device()))),
        first_microbatch_(ctx.coordinate(Axis::kDp) * plan.num_microbatches),
        global_tokens_(global_tokens) {}

  Batch train_batch(int64_t step, int64_t microbatch) override {
    return {.tokens_BS = at::empty_like(tokens_BS_),
            .targets_BS = at::empty_like(tokens_BS_),
            .first_sample = (first_microbatch_ + microbatch) * tokens_BS_.size(0),
            .step = step};
  }
  bool has_validation() const override { return false; }
  Batch validation_batch(int64_t, int64_t microbatch) override { return train_batch(0, microbatch); }
  std::optional<int64_t> global_tokens_per_batch() const override { return global_tokens_; }
  bool has_tokens() const override { return false; }

 private:
  at::Tensor tokens_BS_;
  int64_t first_microbatch_;
  std::optional<int64_t> global_tokens_;
};

class ShapeDataProvider final : public DataProvider {
 public:
  explicit ShapeDataProvider(std::shared_ptr<DataProvider> like) : like_(std::move(like)) {}
  std::unique_ptr<RankData> build_data(const RankContext& ctx, const RunPlan& plan) const override {
    const std::optional<int64_t> tokens =
        like_ ? like_->build_data(ctx, plan)->global_tokens_per_batch() : plan.tokens_per_step();
    return std::make_unique<ShapeData>(ctx, plan, tokens);
  }
  std::string describe() const override { return "shapes"; }

 private:
  std::shared_ptr<DataProvider> like_;
};

}  // namespace

std::shared_ptr<DataProvider> make_shape_data(std::shared_ptr<DataProvider> like) {
  return std::make_shared<ShapeDataProvider>(std::move(like));
}

}  // namespace ranklab
