#include "core/optim/grouped_optimizer.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"

namespace ranklab {
namespace {

class Sgd : public GroupedOptimizer {
 public:
  Sgd(const std::vector<Parameter*>& parameters, const SgdOptions& options)
      : GroupedOptimizer(group_by_decay(parameters, {.offload = options.cpu_offload, .masters = options.masters}),
                         {"momentum"}),
        options_(options) {
    if (options_.momentum == 0.0) return;
    const MemoryScope memory(MemoryCategory::kOptimizer);
    for (size_t g = 0; g < groups_.size(); ++g) moments_[g] = {groups_[g].zeros()};
  }

  void set_weight_decay(double weight_decay) override { options_.weight_decay = weight_decay; }
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

 private:
  SgdOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd(std::vector<Parameter*> parameters, const SgdOptions& options) {
  return std::make_unique<Sgd>(parameters, options);
}

}  // namespace ranklab
