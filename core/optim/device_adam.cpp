#include "core/optim/device_adam.h"

#include <ATen/core/Tensor.h>

#include "core/nn/kernels/kernel_path.h"

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

}  // namespace

bool has_device_adam(const ParamGroup& group, const GroupMoments& moments) {
  return can_update(kept_of(group, moments));
}

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

}  // namespace ranklab
