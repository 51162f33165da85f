#include "core/parity/global_slice.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/base/text.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

int64_t product(const std::vector<int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

int64_t local_size(const GlobalSlice& slice, size_t dim) {
  return slice.positions[dim].empty() ? slice.shape[dim] : static_cast<int64_t>(slice.positions[dim].size());
}

int64_t cut_elements(const GlobalSlice& slice) {
  int64_t count = 1;
  for (size_t dim = 0; dim < slice.shape.size(); ++dim) count *= local_size(slice, dim);
  return count;
}

std::string dim_text(const std::vector<int64_t>& positions) {
  if (positions.empty()) return ":";
  const int64_t stride = positions.size() > 1 ? positions[1] - positions[0] : 1;
  for (size_t i = 1; i < positions.size(); ++i) {
    if (positions[i] - positions[i - 1] != stride)
      return strprintf("%lld..%lld (%zu of them)", static_cast<long long>(positions.front()),
                       static_cast<long long>(positions.back()), positions.size());
  }
  const std::string range =
      strprintf("%lld:%lld", static_cast<long long>(positions.front()), static_cast<long long>(positions.back() + 1));
  return stride == 1 ? range : range + strprintf(":%lld", static_cast<long long>(stride));
}

}  // namespace

int64_t GlobalSlice::elements() const { return (end < 0 ? cut_elements(*this) : end) - begin; }
int64_t GlobalSlice::global_elements() const { return product(shape); }

bool GlobalSlice::is_whole() const {
  return begin == 0 && end < 0 &&
         std::ranges::all_of(positions, [](const std::vector<int64_t>& one) { return one.empty(); });
}

at::Tensor GlobalSlice::index() const {
  if (is_whole()) return at::arange(global_elements(), at::kLong);
  at::Tensor flat = at::zeros({1}, at::kLong), padding = at::zeros({1}, at::kBool);
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    const at::Tensor here =
        positions[dim].empty() ? at::arange(shape[dim], at::kLong) : at::tensor(positions[dim], at::kLong);
    flat = (flat.unsqueeze(1) * shape[dim] + here.unsqueeze(0)).flatten();
    padding = padding.unsqueeze(1).logical_or(here.ge(shape[dim]).unsqueeze(0)).flatten();
  }
  return flat.masked_fill(padding, -1).slice(0, begin, end < 0 ? flat.numel() : end).contiguous();
}

std::string GlobalSlice::text() const {
  std::vector<std::string> dims;
  for (const std::vector<int64_t>& one : positions) dims.push_back(dim_text(one));
  const std::string cut = "[" + join(dims, ", ") + "]";
  if (end < 0) return cut;
  return strprintf("elements %lld to %lld of ", static_cast<long long>(begin), static_cast<long long>(end - 1)) + cut;
}

GlobalSlice whole_slice(std::vector<int64_t> shape) {
  const size_t dims = shape.size();
  return {.shape = std::move(shape), .positions = std::vector<std::vector<int64_t>>(dims)};
}

GlobalSlice parameter_slice(const Parameter& parameter, int64_t begin, int64_t end) {
  const Partition& cut = parameter.partition;
  GlobalSlice slice = whole_slice(cut.global_shape);
  if (!cut.replicated()) {
    std::vector<int64_t>& positions = slice.positions[static_cast<size_t>(cut.dim)];
    for (const auto& [first, last] : cut.ranges)
      for (int64_t position = first; position < last; ++position) positions.push_back(position);
  }
  if (begin != 0 || (end >= 0 && end != cut_elements(slice))) {
    slice.begin = begin;
    slice.end = end;
  }
  return slice;
}

GlobalSlice activation_global_slice(const ActivationSlice& part, int64_t seq_length, int64_t sequences,
                                    const std::vector<int64_t>& width) {
  std::vector<int64_t> shape = {seq_length, sequences};
  shape.insert(shape.end(), width.begin(), width.end());
  GlobalSlice slice = whole_slice(std::move(shape));
  if (static_cast<int64_t>(part.positions.size()) != seq_length) slice.positions[0] = part.positions;
  for (int64_t sequence = part.first_sequence; sequence < part.end_sequence; ++sequence)
    slice.positions[1].push_back(sequence);
  return slice;
}

std::string coordinates_text(int64_t flat, const std::vector<int64_t>& shape) {
  if (flat < 0) return "padding";
  std::vector<std::string> numbers(shape.size());
  for (size_t dim = shape.size(); dim-- > 0;) {
    numbers[dim] = std::to_string(flat % shape[dim]);
    flat /= shape[dim];
  }
  return "[" + join(numbers, ", ") + "]";
}

}  // namespace ranklab
