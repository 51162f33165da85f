#include "core/nn/parameter.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <span>

#include "core/base/error.h"
#include "core/base/philox.h"
#include "core/base/text.h"
#include "core/sim/memory_scope.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

int64_t product(const std::vector<int64_t>& shape, size_t from, size_t to) {
  int64_t result = 1;
  for (size_t i = from; i < to; ++i) result *= shape[i];
  return result;
}

// Fills the local part from the stream of the whole tensor. Local order is [outer, ranges..., inner]; the global index
// of a row is (outer * length + row) * inner. Rows past the global length are padding and stay zero.
void fill_normal(const Partition& partition, const RandomStream& stream, float std, std::span<float> out) {
  const size_t dim = partition.replicated() ? 0 : static_cast<size_t>(partition.dim);
  const auto& shape = partition.global_shape;
  const int64_t length = shape.empty() ? 1 : shape[dim];
  const int64_t outer = product(shape, 0, dim);
  const int64_t inner = shape.empty() ? 1 : product(shape, dim + 1, shape.size());
  auto ranges = partition.ranges;
  if (partition.replicated()) ranges = {{0, length}};
  size_t at = 0;
  for (int64_t o = 0; o < outer; ++o) {
    for (const auto& [begin, end] : ranges) {
      const int64_t real_end = std::clamp(end, begin, std::max(begin, length));
      const auto count = static_cast<size_t>((real_end - begin) * inner);
      stream.fill_normal(static_cast<uint64_t>((o * length + begin) * inner), out.subspan(at, count));
      at += static_cast<size_t>((end - begin) * inner);
    }
  }
  for (float& value : out) value *= std;
}

}  // namespace

Parameter& ParameterRegistry::create(std::string name, Partition partition, Init init, bool weight_decay) {
  RANKLAB_CHECK(find(name) == nullptr, ErrorKind::kInternal, .where = "ParameterRegistry::create",
                .what = "two parameters have the same global name", .got = quote(name));
  const MemoryScope memory(MemoryCategory::kParameters);
  const NoCostScope no_cost;
  const auto shape = local_shape(partition);
  const auto options = at::TensorOptions().dtype(dtype_).device(device_);
  at::Tensor data;
  if (device_.is_meta()) {
    data = at::empty(shape, options);
  } else if (init.kind == InitKind::kOnes) {
    data = at::ones(shape, options);
  } else {
    at::Tensor values = at::zeros(shape, at::TensorOptions().dtype(at::kFloat));
    if (init.kind == InitKind::kNormal) {
      const RandomStream stream(seed_, RandomPurpose::kInit, name);
      fill_normal(partition, stream, static_cast<float>(init.std),
                  {values.mutable_data_ptr<float>(), static_cast<size_t>(values.numel())});
    }
    data = values.to(options);
  }
  data.set_requires_grad(true);
  parameters_.push_back(std::make_unique<Parameter>(Parameter{
      .name = std::move(name), .data = data, .partition = std::move(partition), .weight_decay = weight_decay}));
  return *parameters_.back();
}

std::vector<Parameter*> ParameterRegistry::parameters() const {
  std::vector<Parameter*> result;
  result.reserve(parameters_.size());
  for (const auto& parameter : parameters_) result.push_back(parameter.get());
  return result;
}

Parameter* ParameterRegistry::find(const std::string& name) const {
  const auto it = std::find_if(parameters_.begin(), parameters_.end(),
                               [&](const auto& parameter) { return parameter->name == name; });
  return it == parameters_.end() ? nullptr : it->get();
}

}  // namespace ranklab
