#include "core/optim/grouped_optimizer.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"

namespace ranklab {
namespace {

class Lion : public GroupedOptimizer {
 public:
  Lion(const std::vector<Parameter*>& parameters, const LionOptions& options)
      : GroupedOptimizer(group_by_decay(parameters, {.offload = options.cpu_offload, .masters = options.masters}),
                         {"exp_avg"}),
        options_(options) {
    const MemoryScope memory(MemoryCategory::kOptimizer);
    for (size_t g = 0; g < groups_.size(); ++g) moments_[g] = {groups_[g].zeros(options.exp_avg_type)};
  }

  void set_weight_decay(double weight_decay) override { options_.weight_decay = weight_decay; }
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
              // Both averages use the momentum of before this step, so the sign is taken first. Products are rounded
              // before they are added, so that an element gets the same bits in a piece as in the whole tensor.
              const at::Tensor mean = exp_avg.mul(options_.beta1).add_(grads[i].mul(1 - options_.beta1));
              weights[i].mul_(kept).sub_(mean.sign_().mul_(lr));
              exp_avg.mul_(options_.beta2).add_(grads[i].mul(1 - options_.beta2));
            }
          });
    }
    return true;
  }

 private:
  LionOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> make_lion(std::vector<Parameter*> parameters, const LionOptions& options) {
  return std::make_unique<Lion>(parameters, options);
}

}  // namespace ranklab
