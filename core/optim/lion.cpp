#include "core/optim/optimizer.h"
#include "core/optim/param_groups.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"

namespace ranklab {
namespace {

class Lion : public Optimizer {
 public:
  Lion(const std::vector<Parameter*>& parameters, const LionOptions& options)
      : options_(options),
        groups_(group_by_decay(parameters, {.offload = options.cpu_offload, .masters = options.masters})) {
    const MemoryScope memory(MemoryCategory::kOptimizer);
    for (size_t g = 0; g < groups_.size(); ++g) moments_[g] = {groups_[g].zeros(options.exp_avg_type)};
  }

  void step(double lr) override { step_scaled(lr, 1); }
  bool step_scaled(double lr, double factor) override {
    const at::NoGradGuard no_grad;
    ++updates_;
    for (size_t g = 0; g < groups_.size(); ++g) {
      const double kept = 1 - lr * (groups_[g].decay ? options_.weight_decay : 0.0);
      groups_[g].update(
          moments_[g], factor,
          [&](at::TensorList weights, at::TensorList grads, std::span<const std::vector<at::Tensor>> moments) {
            for (size_t i = 0; i < weights.size(); ++i) {
              const at::Tensor& exp_avg = moments[0][i];
              // Both averages are of the momentum before this step, so the sign is taken first. Products are rounded
              // before they are added: an element has the same bits in a piece and in the whole.
              const at::Tensor mean = exp_avg.mul(options_.beta1).add_(grads[i].mul(1 - options_.beta1));
              weights[i].mul_(kept).sub_(mean.sign_().mul_(lr));
              exp_avg.mul_(options_.beta2).add_(grads[i].mul(1 - options_.beta2));
            }
          });
    }
    return true;
  }

  void zero_grad() override {
    for (const ParamGroup& group : groups_) group.clear_grads();
  }

  std::vector<OptimizerState> states() const override {
    constexpr std::array kMoments = {"exp_avg"};
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
  LionOptions options_;
  std::array<ParamGroup, 2> groups_;
  std::array<GroupMoments, 2> moments_;  // per group: exp_avg
  int64_t updates_ = 0;
};

}  // namespace

std::unique_ptr<Optimizer> make_lion(std::vector<Parameter*> parameters, const LionOptions& options) {
  return std::make_unique<Lion>(parameters, options);
}

}  // namespace ranklab
