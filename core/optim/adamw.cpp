#include <ATen/ATen.h>

#include "core/optim/optimizer.h"
#include "core/optim/param_groups.h"
#include "core/sim/memory_scope.h"

namespace ranklab {
namespace {

class AdamW : public Optimizer {
 public:
  AdamW(const std::vector<Parameter*>& parameters, const AdamWOptions& options)
      : options_(options), groups_(group_by_decay(parameters, options.cpu_offload)) {
    const MemoryScope memory(MemoryCategory::kOptimizer);
    for (size_t g = 0; g < groups_.size(); ++g) {
      exp_avg_[g] = groups_[g].zeros();
      exp_avg_sq_[g] = groups_[g].zeros();
      if (groups_[g].empty()) continue;
      step_[g] = at::zeros({}, exp_avg_[g][0].options().dtype(at::kFloat));
    }
  }

  void step(double lr) override {
    const at::NoGradGuard no_grad;
    ++updates_;
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (groups_[g].empty()) continue;
      step_[g].add_(1);
      const auto fused = [&](at::TensorList weights, at::TensorList grads, size_t first, size_t count) {
        const std::vector<at::Tensor> steps(count, step_[g]);
        at::_fused_adamw_(weights, grads, at::TensorList(exp_avg_[g]).slice(first, count),
                          at::TensorList(exp_avg_sq_[g]).slice(first, count), {}, steps, lr, options_.beta1,
                          options_.beta2, groups_[g].decay ? options_.weight_decay : 0.0, options_.epsilon, false,
                          false);
      };
      groups_[g].update(2, fused);
    }
  }

  void zero_grad() override {
    for (const ParamGroup& group : groups_) group.clear_grads();
  }

  std::vector<OptimizerState> states() const override {
    std::vector<OptimizerState> result;
    for (size_t g = 0; g < groups_.size(); ++g) {
      const std::vector<at::Tensor> weights = groups_[g].weights();
      for (size_t i = 0; i < weights.size(); ++i) {
        result.push_back({.parameter = groups_[g].parameters[i],
                          .weight = weights[i],
                          .moments = {{"exp_avg", exp_avg_[g][i]}, {"exp_avg_sq", exp_avg_sq_[g][i]}}});
      }
    }
    return result;
  }
  int64_t updates() const override { return updates_; }
  void restored(int64_t updates) override {
    updates_ = updates;
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (!groups_[g].empty()) step_[g].fill_(updates);
      groups_[g].publish();
    }
  }

 private:
  AdamWOptions options_;
  std::array<ParamGroup, 2> groups_;
  std::array<std::vector<at::Tensor>, 2> exp_avg_;
  std::array<std::vector<at::Tensor>, 2> exp_avg_sq_;
  std::array<at::Tensor, 2> step_;
  int64_t updates_ = 0;
};

}  // namespace

std::unique_ptr<Optimizer> make_adamw(std::vector<Parameter*> parameters, const AdamWOptions& options) {
  return std::make_unique<AdamW>(parameters, options);
}

}  // namespace ranklab
