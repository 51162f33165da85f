#include "core/plan/shape_data.h"

#include <ATen/ops/empty.h>

namespace ranklab {
namespace {

class ShapeData final : public RankData {
 public:
  ShapeData(const RankContext& ctx, const RunPlan& plan)
      : tokens_BS_(at::empty({plan.micro_batch_size, plan.config.model.seq_length},
                             at::TensorOptions(at::kLong).device(ctx.device()))),
        first_microbatch_(ctx.coordinate(Axis::kDp) * plan.num_microbatches),
        global_tokens_(plan.tokens_per_step()) {}

  Batch train_batch(int64_t step, int64_t microbatch) override {
    return {.tokens_BS = at::empty_like(tokens_BS_),
            .targets_BS = at::empty_like(tokens_BS_),
            .first_sample = (first_microbatch_ + microbatch) * tokens_BS_.size(0),
            .step = step};
  }
  bool has_validation() const override { return false; }
  Batch validation_batch(int64_t, int64_t microbatch) override { return train_batch(0, microbatch); }
  std::optional<int64_t> global_tokens_per_batch() const override { return global_tokens_; }

 private:
  at::Tensor tokens_BS_;
  int64_t first_microbatch_;
  int64_t global_tokens_;
};

class ShapeDataProvider final : public DataProvider {
 public:
  std::unique_ptr<RankData> build_data(const RankContext& ctx, const RunPlan& plan) const override {
    return std::make_unique<ShapeData>(ctx, plan);
  }
  std::string describe() const override { return "shapes"; }
};

}  // namespace

std::shared_ptr<DataProvider> make_shape_data() { return std::make_shared<ShapeDataProvider>(); }

}  // namespace ranklab
