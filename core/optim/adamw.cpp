#include <ATen/ATen.h>

#include "core/optim/optimizer.h"
#include "core/optim/param_groups.h"
#include "core/sim/memory_scope.h"

namespace ranklab {
namespace {

class AdamW : public Optimizer {
 public:
  AdamW(const std::vector<Parameter*>& parameters, const AdamWOptions& options)
      : options_(options), groups_(group_by_decay(parameters)) {
    const MemoryScope memory(MemoryCategory::kOptimizer);
    for (size_t g = 0; g < groups_.size(); ++g) {
      for (const Parameter* parameter : groups_[g].parameters) {
        exp_avg_[g].push_back(at::zeros_like(parameter->data, at::TensorOptions().requires_grad(false)));
        exp_avg_sq_[g].push_back(at::zeros_like(parameter->data, at::TensorOptions().requires_grad(false)));
      }
      if (groups_[g].parameters.empty()) continue;
      step_[g] = at::zeros({}, groups_[g].parameters[0]->data.options().dtype(at::kFloat).requires_grad(false));
    }
  }

  void step(double lr) override {
    const at::NoGradGuard no_grad;
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (groups_[g].parameters.empty()) continue;
      step_[g].add_(1);
      const auto data = groups_[g].data();
      const std::vector<at::Tensor> steps(data.size(), step_[g]);
      at::_fused_adamw_(data, groups_[g].grads(), exp_avg_[g], exp_avg_sq_[g], {}, steps, lr, options_.beta1,
                        options_.beta2, groups_[g].decay ? options_.weight_decay : 0.0, options_.epsilon, false, false);
    }
  }

  void zero_grad() override {
    for (const ParamGroup& group : groups_) group.clear_grads();
  }

  std::vector<std::pair<std::string, at::Tensor>> state() const override {
    std::vector<std::pair<std::string, at::Tensor>> result;
    for (size_t g = 0; g < groups_.size(); ++g) {
      for (size_t i = 0; i < groups_[g].parameters.size(); ++i) {
        result.emplace_back("exp_avg." + groups_[g].parameters[i]->name, exp_avg_[g][i]);
        result.emplace_back("exp_avg_sq." + groups_[g].parameters[i]->name, exp_avg_sq_[g][i]);
      }
    }
    return result;
  }

 private:
  AdamWOptions options_;
  std::array<ParamGroup, 2> groups_;
  std::array<std::vector<at::Tensor>, 2> exp_avg_;
  std::array<std::vector<at::Tensor>, 2> exp_avg_sq_;
  std::array<at::Tensor, 2> step_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adamw(std::vector<Parameter*> parameters, const AdamWOptions& options) {
  return std::make_unique<AdamW>(parameters, options);
}

}  // namespace ranklab
