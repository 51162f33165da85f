
#include "core/optim/optimizer.h"
#include "core/optim/param_groups.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"

namespace ranklab {
namespace {

class Sgd : public Optimizer {
 public:
  Sgd(const std::vector<Parameter*>& parameters, const SgdOptions& options)
      : options_(options),
        groups_(group_by_decay(parameters, {.offload = options.cpu_offload, .masters = options.masters})) {
    if (options_.momentum == 0.0) return;
    const MemoryScope memory(MemoryCategory::kOptimizer);
    for (size_t g = 0; g < groups_.size(); ++g) moments_[g] = {groups_[g].zeros()};
  }

  void step(double lr) override { step_scaled(lr, 1); }
  bool step_scaled(double lr, double factor) override {
    const at::NoGradGuard no_grad;
    const bool is_first = updates_++ == 0;
    for (size_t g = 0; g < groups_.size(); ++g) {
      const auto fused = [&](at::TensorList weights, at::TensorList grads,
                             std::span<const std::vector<at::Tensor>> moments) {
        const at::TensorList momentum = moments.empty() ? at::TensorList() : at::TensorList(moments[0]);
        at::_fused_sgd_(weights, grads, momentum, groups_[g].decay ? options_.weight_decay : 0.0, options_.momentum, lr,
                        0.0, false, false, is_first);
      };
      groups_[g].update(moments_[g], factor, fused);
    }
    return true;
  }

  void zero_grad() override {
    for (const ParamGroup& group : groups_) group.clear_grads();
  }

  std::vector<OptimizerState> states() const override {
    constexpr std::array kMoments = {"momentum"};
    std::vector<OptimizerState> result;
    for (size_t g = 0; g < groups_.size(); ++g) groups_[g].add_states(moments_[g], kMoments, result);
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
  std::array<GroupMoments, 2> moments_;  // per group: empty, or the momentum
  int64_t updates_ = 0;
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd(std::vector<Parameter*> parameters, const SgdOptions& options) {
  return std::make_unique<Sgd>(parameters, options);
}

}  // namespace ranklab
