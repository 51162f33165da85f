#include "core/runtime/wrapped_optimizer.h"

namespace ranklab {
namespace {

class WrappedOptimizers final : public OptimizerRuntime {
 public:
  WrappedOptimizers(std::shared_ptr<OptimizerRuntime> inner, WrapOptimizer wrap)
      : inner_(std::move(inner)), wrap_(std::move(wrap)) {}
  bool makes_values() const override { return inner_->makes_values(); }
  std::unique_ptr<RankOptimizer> initialize(CausalLm& model, RankContext& ctx, const RunPlan& plan) const override {
    return wrap_(*inner_, model, ctx, plan);
  }

 private:
  std::shared_ptr<OptimizerRuntime> inner_;
  WrapOptimizer wrap_;
};

}  // namespace

std::shared_ptr<OptimizerRuntime> wrap_optimizers(std::shared_ptr<OptimizerRuntime> inner, WrapOptimizer wrap) {
  return std::make_shared<WrappedOptimizers>(std::move(inner), std::move(wrap));
}

}  // namespace ranklab
