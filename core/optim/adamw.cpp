#include "core/nn/kernels/device_kernels.h"
#include "core/nn/kernels/kernel_path.h"
#include "core/optim/grouped_optimizer.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "core/sim/op_cost.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

// All tensors that an update of one parameter reads or writes.
struct Kept {
  at::Tensor weight, exp_avg, exp_avg_sq, grad;
  at::Tensor copy;  // the parameter itself if `weight` is its master; otherwise undefined
};

std::vector<Kept> kept_of(const ParamGroup& group, const GroupMoments& moments) {
  std::vector<Kept> result;
  for (size_t i = 0; i < group.parameters.size(); ++i) {
    const at::Tensor& data = group.parameters[i]->data;
    const bool has_master = !group.masters.empty();
    result.push_back({has_master ? group.masters[i] : data, moments[0][i], moments[1][i], data.grad(),
                      has_master ? data : at::Tensor()});
  }
  return result;
}

bool alike(const at::Tensor& a, const at::Tensor& first) {
  if (!a.defined() || !first.defined()) return a.defined() == first.defined();
  return a.scalar_type() == first.scalar_type() && a.device() == first.device() && a.is_contiguous() &&
         has_kernel_type(a);
}

bool alike(const Kept& a, const Kept& first) {
  return alike(a.weight, first.weight) && alike(a.exp_avg, first.exp_avg) && alike(a.exp_avg_sq, first.exp_avg_sq) &&
         alike(a.grad, first.grad) && alike(a.copy, first.copy);
}

// False for masters or moments in host memory.
bool on_one_device(const Kept& kept) {
  const at::Device device = kept.weight.device();
  return kept.grad.defined() && kept.exp_avg.device() == device && kept.exp_avg_sq.device() == device &&
         kept.grad.device() == device && (!kept.copy.defined() || kept.copy.device() == device);
}

bool can_update(const std::vector<Kept>& kept) {
  if (kept.empty() || device_kernels_of(kept[0].weight) == nullptr || !on_one_device(kept[0])) return false;
  for (const Kept& one : kept) {
    if (!alike(one, kept[0])) return false;
  }
  return true;
}

// Whether the whole group is on one device that has such kernels, in types that they read. REQUIRES: gradients are
// defined.
bool has_device_adam(const ParamGroup& group, const GroupMoments& moments) {
  return can_update(kept_of(group, moments));
}

// The update of a whole parameter group by a device kernel (core/nn/kernels/device_kernels.h): one pass reads
// gradients, weights and moments in the types in which they are stored, scales the gradients, and writes the weights,
// the moments and, if there are masters, the rounded parameters. The plain version is ParamGroup::update() with
// at::_fused_adamw_. `rule` need not set the tensor types: they are taken from the group. RETURNS false if there is no
// kernel; then nothing has changed.
bool device_adam(const ParamGroup& group, const GroupMoments& moments, DeviceAdam rule) {
  const std::vector<Kept> kept = kept_of(group, moments);
  if (!can_update(kept)) return false;
  const Kept& first = kept[0];
  rule.weight = device_number(first.weight);
  rule.exp_avg = device_number(first.exp_avg);
  rule.exp_avg_sq = device_number(first.exp_avg_sq);
  rule.grad = device_number(first.grad);
  rule.copy = device_number(first.copy.defined() ? first.copy : first.weight);
  std::vector<DeviceAdamTensor> tensors;
  for (const Kept& one : kept) {
    tensors.push_back({device_out(one.weight), device_out(one.exp_avg), device_out(one.exp_avg_sq), device_in(one.grad),
                       device_out(one.copy), one.weight.numel()});
  }
  device_kernels_of(first.weight)->adam(rule, tensors);
  return true;
}

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
