#include "core/nn/parameter.h"

#include "core/base/error.h"
#include "core/base/injected_bug.h"
#include "core/base/text.h"
#include "core/nn/initial_values.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"
#include "core/spec/hidden_matrix.h"

namespace ranklab {
namespace {

// A tensor with sizes but no memory, as ZeRO stage 3 leaves a parameter between its uses.
at::Tensor without_memory(const std::vector<int64_t>& shape, const at::TensorOptions& options) {
  const at::Tensor tensor = at::empty({0}, options);
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous(shape);
  return tensor;
}

}  // namespace

std::string parameter_key(const Parameter& parameter) {
  if (!parameter.is_expert) return parameter.name;
  constexpr std::string_view kExperts = "experts.";
  const size_t at = parameter.name.find(kExperts);
  if (at == std::string::npos) return parameter.name;
  const size_t begin = at + kExperts.size(), end = parameter.name.find('.', begin);
  return end == std::string::npos ? parameter.name : parameter.name.substr(0, begin) + "*" + parameter.name.substr(end);
}

Parameter& ParameterRegistry::create(std::string name, Partition partition, Init init, bool weight_decay) {
  RANKLAB_CHECK(find(name) == nullptr, ErrorKind::kInternal, .where = "ParameterRegistry::create",
                .what = "two parameters have the same global name", .got = quote(name));
  const NoCostScope no_cost;
  const auto options = at::TensorOptions().dtype(dtype_).device(device_);
  const std::vector<int64_t> shape = local_shape(partition);
  auto parameter = std::make_unique<Parameter>(Parameter{.name = std::move(name),
                                                         .data = {},
                                                         .partition = std::move(partition),
                                                         .weight_decay = weight_decay,
                                                         .unit = unit_});
  parameter->data = without_memory(shape, options);
  parameter->unmade =
      InitialValues{.init = init, .seed = seed_, .as_first_shard = injected(InjectedBug::kInitPerShard)};
  if (!later_) make_values(*parameter);
  parameter->data.set_requires_grad(true);
  by_name_.emplace(parameter->name, parameter.get());
  parameters_.push_back(std::move(parameter));
  return *parameters_.back();
}

std::vector<Parameter*> ParameterRegistry::parameters() const {
  std::vector<Parameter*> result;
  result.reserve(parameters_.size());
  for (const auto& parameter : parameters_) result.push_back(parameter.get());
  return result;
}

Parameter* ParameterRegistry::find(const std::string& name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : it->second;
}

std::vector<at::Tensor> ModuleScope::weights() const {
  std::vector<at::Tensor> weights;
  for (const Parameter* parameter : registry_.parameters())
    if (parameter->name.starts_with(parameter_path() + ".")) weights.push_back(parameter->data);
  return weights;
}

Parameter* ModuleScope::shared(const std::string& name) const {
  if (!shares_parameters()) return nullptr;
  Parameter* const parameter = registry_.find(owner_ + "." + name);
  RANKLAB_CHECK(parameter != nullptr, ErrorKind::kInternal, .where = path_,
                .what = "the module whose parameters it shares lacks one", .got = "no " + quote(owner_ + "." + name),
                .fix = "make that module first");
  return parameter;
}

Parameter& ModuleScope::make_weight(const ModuleSpec& spec, int index, int count) const {
  if (Parameter* const known = shared(spec.name + ".weight")) return *known;
  const bool matrix = spec.shape.size() > 1;
  Parameter& weight = registry_.create(path_of(spec.name) + ".weight",
                                       shard(spec.shape, spec.parts(), spec.split, index, count), spec.init, matrix);
  weight.hidden_matrix = is_hidden_matrix(spec);
  return weight;
}

Parameter* ModuleScope::make_bias(const ModuleSpec& spec, int index, int count) const {
  if (!spec.bias) return nullptr;
  if (Parameter* const known = shared(spec.name + ".bias")) return known;
  return &registry_.create(path_of(spec.name) + ".bias",
                           shard({spec.shape.at(0)}, spec.parts(), spec.bias_split(), index, count), spec.bias_init,
                           false);
}

}  // namespace ranklab
