#include "core/optim/device_adam.h"
#include "core/optim/grouped_optimizer.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "core/sim/op_cost.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

class AdamW : public GroupedOptimizer {
 public:
  AdamW(const std::vector<Parameter*>& parameters, const AdamWOptions& options)
      : GroupedOptimizer(group_by_decay(parameters, {.offload = options.cpu_offload, .masters = options.masters}),
                         {"exp_avg", "exp_avg_sq"}),
        options_(options) {
    const MemoryScope memory(MemoryCategory::kOptimizer);
    for (size_t g = 0; g < groups_.size(); ++g) {
      moments_[g] = {groups_[g].zeros(options.exp_avg_type), groups_[g].zeros(options.exp_avg_sq_type)};
      if (groups_[g].empty()) continue;
      step_[g] = at::zeros({}, moments_[g][0][0].options().dtype(at::kFloat));
    }
  }

  void set_weight_decay(double weight_decay) override { options_.weight_decay = weight_decay; }
  bool step_scaled(double lr, double factor) override {
    const at::NoGradGuard no_grad;
    ++updates_;
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (groups_[g].empty()) continue;
      step_[g].add_(1);
      const CostScope cost = update_cost(g);
      if (device_adam(groups_[g], moments_[g], rule_of(g, lr, factor))) continue;
      const auto fused = [&](at::TensorList weights, at::TensorList grads,
                             std::span<const std::vector<at::Tensor>> moments) {
        const std::vector<at::Tensor> steps(weights.size(), step_[g]);
        at::_fused_adamw_(weights, grads, moments[0], moments[1], {}, steps, lr, options_.beta1, options_.beta2,
                          groups_[g].decay ? options_.weight_decay : 0.0, options_.epsilon, false, false);
      };
      groups_[g].update(moments_[g], factor, fused);
    }
    return true;
  }

  bool scales_in_update() const override {
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (!groups_[g].empty() && !has_device_adam(groups_[g], moments_[g])) return false;
    }
    return true;
  }

  void restored(int64_t updates) override {
    GroupedOptimizer::restored(updates);
    for (size_t g = 0; g < groups_.size(); ++g)
      if (!groups_[g].empty()) step_[g].fill_(updates);
  }

 private:
  // Charged as one pass over all tensors, whichever code path computes it.
  CostScope update_cost(size_t group) const {
    const ParamGroup& of = groups_[group];
    const bool as_kept = of.as_kept(moments_[group], 1);
    return {as_kept ? "_fused_adamw_" : "optimizer_update", 0.0, of.traffic_bytes(moments_[group]),
            as_kept ? dtype_of(of.parameters[0]->data.scalar_type()) : DType::kFloat32};
  }
  DeviceAdam rule_of(size_t group, double lr, double factor) const {
    return {.lr = lr,
            .beta1 = options_.beta1,
            .beta2 = options_.beta2,
            .epsilon = options_.epsilon,
            .weight_decay = groups_[group].decay ? options_.weight_decay : 0.0,
            .factor = factor,
            .step = updates_};
  }

  AdamWOptions options_;
  std::array<at::Tensor, 2> step_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adamw(std::vector<Parameter*> parameters, const AdamWOptions& options) {
  return std::make_unique<AdamW>(parameters, options);
}

}  // namespace ranklab
