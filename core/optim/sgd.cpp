#include <ATen/ATen.h>

#include "core/optim/optimizer.h"
#include "core/optim/param_groups.h"
#include "core/sim/memory_scope.h"

namespace ranklab {
namespace {

class Sgd : public Optimizer {
 public:
  Sgd(const std::vector<Parameter*>& parameters, const SgdOptions& options)
      : options_(options), groups_(group_by_decay(parameters, options.cpu_offload)) {
    if (options_.momentum == 0.0) return;
    const MemoryScope memory(MemoryCategory::kOptimizer);
    for (size_t g = 0; g < groups_.size(); ++g) momentum_[g] = groups_[g].zeros();
  }

  void step(double lr) override {
    const at::NoGradGuard no_grad;
    const bool is_first = updates_++ == 0;
    for (size_t g = 0; g < groups_.size(); ++g) {
      const auto fused = [&](at::TensorList weights, at::TensorList grads, size_t first, size_t count) {
        const at::TensorList momentum(momentum_[g]);
        at::_fused_sgd_(weights, grads, momentum.empty() ? momentum : momentum.slice(first, count),
                        groups_[g].decay ? options_.weight_decay : 0.0, options_.momentum, lr, 0.0, false, false,
                        is_first);
      };
      groups_[g].update(momentum_[g].empty() ? 0 : 1, fused);
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
        result.push_back({.parameter = groups_[g].parameters[i], .weight = weights[i], .moments = {}});
        if (!momentum_[g].empty()) result.back().moments.emplace_back("momentum", momentum_[g][i]);
      }
    }
    return result;
  }
  int64_t updates() const override { return updates_; }
  void restored(int64_t updates) override {
    updates_ = updates;
    for (const ParamGroup& group : groups_) group.publish();
  }

 private:
  SgdOptions options_;
  std::array<ParamGroup, 2> groups_;
  std::array<std::vector<at::Tensor>, 2> momentum_;
  int64_t updates_ = 0;
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd(std::vector<Parameter*> parameters, const SgdOptions& options) {
  return std::make_unique<Sgd>(parameters, options);
}

}  // namespace ranklab
