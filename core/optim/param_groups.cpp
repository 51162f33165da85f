#include "core/optim/param_groups.h"

#include "core/base/error.h"
#include "core/nn/kernels/kernel_path.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

bool is_16_bit(const at::Tensor& tensor) { return tensor.itemsize() == 2; }
// The type in which updates of a tensor are computed.
at::ScalarType wide_type(const at::Tensor& tensor) { return is_16_bit(tensor) ? at::kFloat : tensor.scalar_type(); }

at::Tensor make_master(const at::Tensor& data, bool offload) {
  const at::NoGradGuard no_grad;
  auto options = data.options().requires_grad(false).dtype(wide_type(data));
  // Pinned, so that copies from and to the device run at link speed.
  if (offload) options = options.device(host_side(data)).pinned_memory(data.is_cuda());
  at::Tensor master = at::empty(data.sizes(), options);
  return master.copy_(data.detach());
}

const at::Tensor& gradient(const Parameter* parameter) {
  const at::Tensor& grad = parameter->data.grad();
  RANKLAB_CHECK(grad.defined(), ErrorKind::kInternal, .where = "Optimizer::step", .what = "a parameter has no gradient",
                .got = parameter->name, .fix = "call GradReducer::finish() before the optimizer");
  return grad;
}

// A stored tensor, widened to fp32 if it has 16 bits; store() rounds the wide numbers back into it.
class Widened {
 public:
  explicit Widened(at::Tensor kept) : kept_(std::move(kept)), wide_(kept_.to(wide_type(kept_))) {}
  const at::Tensor& wide() const { return wide_; }
  void store() const {
    if (!wide_.is_same(kept_)) kept_.copy_(wide_);
  }

 private:
  at::Tensor kept_, wide_;
};

}  // namespace

std::vector<at::Tensor> ParamGroup::weights() const {
  if (!masters.empty()) return masters;
  std::vector<at::Tensor> result;
  for (const Parameter* parameter : parameters) result.push_back(parameter->data);
  return result;
}

std::vector<at::Tensor> ParamGroup::zeros(std::optional<at::ScalarType> type) const {
  std::vector<at::Tensor> result;
  for (const at::Tensor& weight : weights()) {
    const auto options = at::TensorOptions().requires_grad(false).dtype(type.value_or(wide_type(weight)));
    result.push_back(at::zeros_like(weight, options));
  }
  return result;
}

void ParamGroup::clear_grads() const {
  for (Parameter* parameter : parameters) parameter->data.mutable_grad().reset();
}

void ParamGroup::add_states(const GroupMoments& moments, std::span<const char* const> names,
                            std::vector<OptimizerState>& states) const {
  const std::vector<at::Tensor> updated = weights();
  for (size_t i = 0; i < updated.size(); ++i) {
    OptimizerState state{.parameter = parameters[i], .weight = updated[i], .moments = {}};
    for (size_t m = 0; m < moments.size(); ++m) state.moments.emplace_back(names[m], moments[m][i]);
    states.push_back(std::move(state));
  }
}

void ParamGroup::publish() const {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < masters.size(); ++i) parameters[i]->data.copy_(masters[i]);
}

bool ParamGroup::as_kept(const GroupMoments& moments, double factor) const {
  if (!masters.empty() || factor != 1) return false;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor& weight = parameters[i]->data;
    if (is_16_bit(weight) || gradient(parameters[i]).scalar_type() != weight.scalar_type()) return false;
    for (const std::vector<at::Tensor>& moment : moments) {
      if (moment[i].scalar_type() != weight.scalar_type()) return false;
    }
  }
  return true;
}

// On a GPU one kernel does it all: reads the gradient, reads and writes weight and moments, writes the parameter.
double ParamGroup::traffic_bytes(const GroupMoments& moments) const {
  double bytes = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor& data = parameters[i]->data;
    size_t element = gradient(parameters[i]).itemsize();
    element += masters.empty() ? 2 * data.itemsize() : 2 * masters[i].itemsize() + data.itemsize();
    for (const std::vector<at::Tensor>& moment : moments) element += 2 * moment[i].itemsize();
    bytes += static_cast<double>(data.numel()) * static_cast<double>(element);
  }
  return bytes;
}

void ParamGroup::update_one(size_t index, const GroupMoments& moments, double factor, const Update& update) const {
  const MemoryScope memory(MemoryCategory::kBuffers);
  const at::Tensor& kept = masters.empty() ? parameters[index]->data : masters[index];
  const Widened weight(kept.detach());
  at::Tensor grad = gradient(parameters[index]);
  if (grad.scalar_type() != weight.wide().scalar_type() || grad.device() != weight.wide().device() || factor != 1) {
    at::Tensor wide = at::empty_like(weight.wide());
    grad = wide.copy_(grad);
    if (factor != 1) grad.mul_(factor);
  }
  std::vector<Widened> widened;
  for (const std::vector<at::Tensor>& moment : moments) widened.emplace_back(moment[index]);
  GroupMoments wide;
  for (const Widened& moment : widened) wide.push_back({moment.wide()});
  update(weight.wide(), grad, wide);
  for (const Widened& moment : widened) moment.store();
  weight.store();
  if (!masters.empty()) parameters[index]->data.copy_(masters[index]);
}

void ParamGroup::update(const GroupMoments& moments, double factor, const Update& update) const {
  if (parameters.empty()) return;
  const at::NoGradGuard no_grad;
  if (as_kept(moments, factor)) {
    std::vector<at::Tensor> grads;
    for (const Parameter* parameter : parameters) grads.push_back(gradient(parameter));
    return update(weights(), grads, moments);
  }
  const CostScope cost("optimizer_update", 0.0, traffic_bytes(moments), DType::kFloat32);
  for (size_t i = 0; i < parameters.size(); ++i) update_one(i, moments, factor, update);
}

std::array<ParamGroup, 2> group_by_decay(const std::vector<Parameter*>& parameters, const ParamGroupOptions& options) {
  std::array<ParamGroup, 2> groups{ParamGroup{true, {}, {}}, ParamGroup{false, {}, {}}};
  const MemoryScope memory(MemoryCategory::kOptimizer);
  const bool narrow = !parameters.empty() && is_16_bit(parameters[0]->data);
  for (Parameter* parameter : parameters) {
    RANKLAB_CHECK(is_16_bit(parameter->data) == narrow, ErrorKind::kInvalidArgument, .where = "optimizer",
                  .what = "parameters in 16 bits and wider ones in one optimizer", .got = parameter->name,
                  .fix = "give each type an optimizer of its own");
    ParamGroup& group = groups[parameter->weight_decay ? 0 : 1];
    group.parameters.push_back(parameter);
    if ((narrow && options.masters) || options.offload)
      group.masters.push_back(make_master(parameter->data, options.offload));
  }
  return groups;
}

}  // namespace ranklab
