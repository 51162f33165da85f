#include <ATen/ATen.h>

#include "core/optim/optimizer.h"
#include "core/optim/param_groups.h"
#include "core/sim/memory_scope.h"

namespace ranklab {
namespace {

class Sgd : public Optimizer {
 public:
  Sgd(const std::vector<Parameter*>& parameters, const SgdOptions& options)
      : options_(options), groups_(group_by_decay(parameters)) {
    if (options_.momentum == 0.0) return;
    const MemoryScope memory(MemoryCategory::kOptimizer);
    for (size_t g = 0; g < groups_.size(); ++g) {
      for (const Parameter* parameter : groups_[g].parameters) {
        momentum_[g].push_back(at::zeros_like(parameter->data, at::TensorOptions().requires_grad(false)));
      }
    }
  }

  void step(double lr) override {
    const at::NoGradGuard no_grad;
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (groups_[g].parameters.empty()) continue;
      at::_fused_sgd_(groups_[g].data(), groups_[g].grads(), momentum_[g],
                      groups_[g].decay ? options_.weight_decay : 0.0, options_.momentum, lr, 0.0, false, false,
                      is_first_step_);
    }
    is_first_step_ = false;
  }

  void zero_grad() override {
    for (const ParamGroup& group : groups_) group.clear_grads();
  }

  std::vector<std::pair<std::string, at::Tensor>> state() const override {
    std::vector<std::pair<std::string, at::Tensor>> result;
    for (size_t g = 0; g < groups_.size(); ++g) {
      for (size_t i = 0; i < momentum_[g].size(); ++i) {
        result.emplace_back("momentum." + groups_[g].parameters[i]->name, momentum_[g][i]);
      }
    }
    return result;
  }

 private:
  SgdOptions options_;
  std::array<ParamGroup, 2> groups_;
  std::array<std::vector<at::Tensor>, 2> momentum_;
  bool is_first_step_ = true;
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd(std::vector<Parameter*> parameters, const SgdOptions& options) {
  return std::make_unique<Sgd>(parameters, options);
}

}  // namespace ranklab
