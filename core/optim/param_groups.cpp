#include "core/optim/param_groups.h"

#include <ATen/ATen.h>

#include <optional>

#include "core/base/error.h"
#include "core/sim/memory_scope.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

bool is_16_bit(const Parameter* parameter) { return parameter->data.itemsize() == 2; }

at::Tensor make_master(const at::Tensor& data, bool narrow, bool offload) {
  const at::NoGradGuard no_grad;
  auto options = data.options().requires_grad(false).dtype(narrow ? at::kFloat : data.scalar_type());
  // Pinned: what a device copies from and to at the speed of its link.
  if (offload) options = options.device(at::kCPU).pinned_memory(data.is_cuda());
  at::Tensor master = at::empty(data.sizes(), options);
  return master.copy_(data.detach());
}

const at::Tensor& gradient(const Parameter* parameter) {
  const at::Tensor& grad = parameter->data.grad();
  RANKLAB_CHECK(grad.defined(), ErrorKind::kInternal, .where = "Optimizer::step", .what = "a parameter has no gradient",
                .got = parameter->name, .fix = "call GradReducer::finish() before the optimizer");
  return grad;
}

}  // namespace

std::vector<at::Tensor> ParamGroup::weights() const {
  if (!masters.empty()) return masters;
  std::vector<at::Tensor> result;
  for (const Parameter* parameter : parameters) result.push_back(parameter->data);
  return result;
}

std::vector<at::Tensor> ParamGroup::zeros() const {
  std::vector<at::Tensor> result;
  for (const at::Tensor& weight : weights())
    result.push_back(at::zeros_like(weight, at::TensorOptions().requires_grad(false)));
  return result;
}

void ParamGroup::clear_grads() const {
  for (Parameter* parameter : parameters) parameter->data.mutable_grad().reset();
}

void ParamGroup::publish() const {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < masters.size(); ++i) parameters[i]->data.copy_(masters[i]);
}

void ParamGroup::update(int moments, const Update& update) const {
  if (parameters.empty()) return;
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> grads;
  for (const Parameter* parameter : parameters) grads.push_back(gradient(parameter));
  if (masters.empty()) return update(weights(), grads, 0, parameters.size());
  // On a GPU one kernel: reads the gradient, reads and writes master and moments, writes the parameter.
  double elements = 0;
  for (const at::Tensor& master : masters) elements += static_cast<double>(master.numel());
  const CostScope cost(0.0, elements * (2 + 8 * (1 + moments) + 2), DType::kFloat32);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const MemoryScope memory(MemoryCategory::kBuffers);
    at::Tensor wide = at::empty_like(masters[i]);
    wide.copy_(grads[i]);
    update(masters[i], wide, i, 1);
  }
  publish();
}

std::array<ParamGroup, 2> group_by_decay(const std::vector<Parameter*>& parameters, bool offload) {
  std::array<ParamGroup, 2> groups{ParamGroup{true, {}, {}}, ParamGroup{false, {}, {}}};
  const MemoryScope memory(MemoryCategory::kOptimizer);
  const bool narrow = !parameters.empty() && is_16_bit(parameters[0]);
  for (Parameter* parameter : parameters) {
    RANKLAB_CHECK(is_16_bit(parameter) == narrow, ErrorKind::kInvalidArgument, .where = "optimizer",
                  .what = "parameters in 16 bits and wider ones in one optimizer", .got = parameter->name,
                  .fix = "give each type an optimizer of its own");
    ParamGroup& group = groups[parameter->weight_decay ? 0 : 1];
    group.parameters.push_back(parameter);
    if (narrow || offload) group.masters.push_back(make_master(parameter->data, narrow, offload));
  }
  return groups;
}

}  // namespace ranklab
