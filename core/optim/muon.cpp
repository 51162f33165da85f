// Muon: orthogonalized momentum for hidden matrices, AdamW for everything else.
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/optim/newton_schulz.h"
#include "core/optim/optimizer.h"
#include "core/optim/param_groups.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"

namespace ranklab {
namespace {

// Gives a matrix's update the root mean square of an AdamW update, so that both use one learning rate (arXiv
// 2502.16982, eq. 4).
constexpr double kAdamWRms = 0.2;

double rms_factor(const at::Tensor& matrix) {
  return kAdamWRms * std::sqrt(static_cast<double>(std::max(matrix.size(0), matrix.size(1))));
}

void map_whole(const std::vector<Parameter*>& parameters, std::vector<at::Tensor>& values, const MatrixMap& map) {
  for (size_t i = 0; i < parameters.size(); ++i) values[i] = map_parts(*parameters[i], {values[i]}, 0, map);
}

std::vector<Parameter*> only(std::vector<Parameter*> parameters, bool hidden_matrices) {
  std::erase_if(parameters, [&](const Parameter* one) { return one->hidden_matrix != hidden_matrices; });
  return parameters;
}

class Muon : public Optimizer {
 public:
  Muon(const std::vector<Parameter*>& parameters, const MuonOptions& options)
      : options_(options),
        others_(make_adamw(only(parameters, false), options.others)),
        groups_(group_by_decay(only(parameters, true),
                               {.offload = options.others.cpu_offload, .masters = options.others.masters})) {
    const MemoryScope memory(MemoryCategory::kOptimizer);
    for (size_t g = 0; g < groups_.size(); ++g) moments_[g] = {groups_[g].zeros(options.others.exp_avg_type)};
  }

  void map_matrices_with(MapMatrices map) override { map_ = std::move(map); }

  void set_weight_decay(double weight_decay) override {
    options_.others.weight_decay = weight_decay;
    others_->set_weight_decay(weight_decay);
  }
  void step(double lr) override { step_scaled(lr, 1); }
  bool step_scaled(double lr, double factor) override {
    const at::NoGradGuard no_grad;
    others_->step_scaled(lr, factor);
    ++updates_;
    std::vector<Parameter*> matrices;
    for (const ParamGroup& group : groups_)
      matrices.insert(matrices.end(), group.parameters.begin(), group.parameters.end());
    std::vector<at::Tensor> directions = momenta(factor);
    map_(matrices, directions, [this](const at::Tensor& matrix) {
      return newton_schulz(matrix, options_.ns_steps, options_.ns_type).mul_(rms_factor(matrix));
    });
    apply(lr, directions);
    return true;
  }

  void zero_grad() override {
    others_->zero_grad();
    for (const ParamGroup& group : groups_) group.clear_grads();
  }

  std::vector<OptimizerState> states() const override {
    constexpr std::array kMoments = {"momentum_buffer"};
    std::vector<OptimizerState> result = others_->states();
    for (size_t g = 0; g < groups_.size(); ++g) groups_[g].add_states(moments_[g], kMoments, result);
    return result;
  }
  int64_t updates() const override { return updates_; }
  void restored(int64_t updates) override {
    updates_ = updates;
    others_->restored(updates);
    for (const ParamGroup& group : groups_) group.publish();
  }

 private:
  // The tensors to orthogonalize, computed as in torch.optim.Muon. Products are rounded before they are added: this
  // gives an element the same bits whether the kernel processes it in a vector or in the remainder, and so in pieces as
  // in whole matrices.
  std::vector<at::Tensor> momenta(double factor) {
    const double momentum = options_.momentum;
    std::vector<at::Tensor> result;
    for (size_t g = 0; g < groups_.size(); ++g) {
      groups_[g].update(moments_[g], factor,
                        [&](at::TensorList, at::TensorList grads, std::span<const std::vector<at::Tensor>> moments) {
                          for (size_t i = 0; i < grads.size(); ++i) {
                            const at::Tensor& buffer = moments[0][i];
                            const at::Tensor added = grads[i].mul(1 - momentum);
                            buffer.mul_(momentum).add_(added);
                            result.push_back(options_.nesterov ? buffer.mul(momentum).add_(added) : buffer.clone());
                          }
                        });
    }
    return result;
  }

  void apply(double lr, const std::vector<at::Tensor>& directions) {
    size_t next = 0;
    for (const ParamGroup& group : groups_) {
      const double kept = 1 - lr * (group.decay ? options_.others.weight_decay : 0.0);
      group.update({}, 1, [&](at::TensorList weights, at::TensorList, std::span<const std::vector<at::Tensor>>) {
        for (const at::Tensor& weight : weights) weight.mul_(kept).sub_(directions[next++].mul(lr));
      });
    }
  }

  MuonOptions options_;
  std::unique_ptr<Optimizer> others_;
  std::array<ParamGroup, 2> groups_;
  std::array<GroupMoments, 2> moments_;  // per group: the momentum
  MapMatrices map_ = map_whole;
  int64_t updates_ = 0;
};

}  // namespace

std::unique_ptr<Optimizer> make_muon(std::vector<Parameter*> parameters, const MuonOptions& options) {
  return std::make_unique<Muon>(parameters, options);
}

}  // namespace ranklab
