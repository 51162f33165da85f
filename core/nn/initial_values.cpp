#include "core/nn/initial_values.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/base/numbers/philox.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "core/sim/op_observer.h"
#include "core/spec/initial_draw.h"

namespace ranklab {
namespace {

constexpr int64_t kChunk = 1 << 18;  // elements that a thread stages in fp32 before conversion to their type or device

int64_t product(const std::vector<int64_t>& shape, size_t from, size_t to) {
  int64_t result = 1;
  for (size_t i = from; i < to; ++i) result *= shape[i];
  return result;
}

// Maps elements of a local tensor to the global one. The local order is [outer, ranges..., inner]; the global index of
// a row is (outer * length + row) * inner. Rows past the global length are padding.
class GlobalPlace {
 public:
  explicit GlobalPlace(const Partition& partition, bool as_first_shard = false) : ranges_(partition.ranges) {
    const size_t dim = partition.replicated() ? 0 : static_cast<size_t>(partition.dim);
    const auto& shape = partition.global_shape;
    length_ = shape.empty() ? 1 : shape[dim];
    inner_ = shape.empty() ? 1 : product(shape, dim + 1, shape.size());
    if (partition.replicated()) ranges_ = {{0, length_}};
    if (as_first_shard) {
      const int64_t shift = ranges_.front().first;
      for (auto& [begin, end] : ranges_) begin -= shift, end -= shift;
    }
    for (const auto& [begin, end] : ranges_) local_ += (end - begin) * inner_;
  }

  // Calls visit(offset in [first, first + count), elements, global index) for each run of elements that is not padding.
  template <typename Visit>
  void each_run(int64_t first, int64_t count, const Visit& visit) const {
    if (count == 0) return;
    const int64_t end = first + count;
    for (int64_t outer = first / local_, at = outer * local_; at < end; ++outer) {
      for (const auto& [row_begin, row_end] : ranges_) {
        const int64_t real_end = std::clamp(row_end, row_begin, std::max(row_begin, length_));
        const int64_t from = std::max(at, first), to = std::min(at + (real_end - row_begin) * inner_, end);
        if (from < to) visit(from - first, to - from, (outer * length_ + row_begin) * inner_ + (from - at));
        at += (row_end - row_begin) * inner_;
      }
    }
  }

 private:
  std::vector<std::pair<int64_t, int64_t>> ranges_;
  int64_t length_ = 1, inner_ = 1;
  int64_t local_ = 0;  // elements per outer index
};

void fill_drawn(const Parameter& parameter, int64_t first, std::span<float> out) {
  const RandomStream stream(parameter.unmade->seed, RandomPurpose::kInit, parameter.name);
  std::ranges::fill(out, 0.0F);
  const GlobalPlace place(parameter.partition, parameter.unmade->as_first_shard);
  place.each_run(first, static_cast<int64_t>(out.size()), [&](int64_t offset, int64_t count, int64_t global) {
    draw_initial(parameter.unmade->init, stream, static_cast<uint64_t>(global),
                 out.subspan(static_cast<size_t>(offset), static_cast<size_t>(count)));
  });
}

// The same values, drawn by as many threads as the math library may use: one for a rank that is a thread, the host's
// cores for a rank that has a GPU.
void fill_drawn_on_threads(const Parameter& parameter, int64_t first, std::span<float> out) {
  const auto count = static_cast<int64_t>(out.size());
  const int64_t pieces = std::min<int64_t>(at::get_num_threads(), (count + kChunk - 1) / kChunk);
  const int64_t step = (count + std::max<int64_t>(pieces, 1) - 1) / std::max<int64_t>(pieces, 1);
  std::vector<std::jthread> others;
  for (int64_t at = step; at < count; at += step) {
    const auto part = out.subspan(static_cast<size_t>(at), static_cast<size_t>(std::min(step, count - at)));
    others.emplace_back([&parameter, first, at, part] { fill_drawn(parameter, first + at, part); });
  }
  fill_drawn(parameter, first, out.first(static_cast<size_t>(std::min(step, count))));
}

// Unmade matrices that are the same of several experts, by their key.
std::map<std::string, std::vector<Parameter*>> expert_matrices(const ParameterRegistry& registry) {
  std::map<std::string, std::vector<Parameter*>> found;
  for (Parameter* parameter : registry.parameters()) {
    if (parameter->is_expert && parameter->unmade && parameter->data.dim() == 2)
      found[parameter_key(*parameter)].push_back(parameter);
  }
  return found;
}

std::span<float> numbers(const at::Tensor& tensor) {
  return {tensor.mutable_data_ptr<float>(), static_cast<size_t>(tensor.numel())};
}

}  // namespace

void fill_initial(const Parameter& parameter, int64_t first, const at::Tensor& out) {
  RANKLAB_CHECK(
      parameter.unmade && out.is_contiguous() && first >= 0 && first + out.numel() <= parameter.data.numel(),
      ErrorKind::kInternal, .where = "fill_initial", .what = "not a part of a parameter without values",
      .got = parameter.name + ", elements " + std::to_string(first) + " to " + std::to_string(first + out.numel()),
      .want = "unmade, of " + std::to_string(parameter.data.numel()) + " elements");
  if (out.is_meta()) return;
  const at::NoGradGuard no_grad;
  const NoCostScope no_cost;
  const InitKind kind = parameter.unmade->init.kind;
  if (!is_drawn(kind)) {
    out.fill_(kind == InitKind::kOnes ? 1 : 0);
    return;
  }
  if (out.is_cpu() && out.scalar_type() == at::kFloat) return fill_drawn_on_threads(parameter, first, numbers(out));
  const MemoryScope memory(MemoryCategory::kBuffers);
  const int64_t at_once = kChunk * at::get_num_threads();
  const at::Tensor wide = at::empty({std::min(at_once, out.numel())}, at::kFloat);
  for (int64_t at = 0; at < out.numel(); at += at_once) {
    const at::Tensor chunk = wide.narrow(0, 0, std::min(at_once, out.numel() - at));
    fill_drawn_on_threads(parameter, first + at, numbers(chunk));
    out.narrow(0, at, chunk.numel()).copy_(chunk);
  }
}

void make_values(Parameter& parameter) {
  if (!parameter.unmade) return;
  const NoCostScope no_cost;
  at::Tensor values;
  {
    const MemoryScope memory(MemoryCategory::kParameters);
    values = at::empty({parameter.data.numel()}, parameter.data.options().requires_grad(false));
  }
  fill_initial(parameter, 0, values);
  set_values(parameter, values);
}

void set_values(Parameter& parameter, const at::Tensor& values) {
  c10::StorageImpl* storage = parameter.data.storage().unsafeGetStorageImpl();
  storage->set_nbytes(values.nbytes());
  storage->set_data_ptr_noswap(values.storage().unsafeGetStorageImpl()->set_data_ptr(at::DataPtr()));
  parameter.unmade.reset();
}

void set_part(const Parameter& parameter, const at::Tensor& whole, int64_t offset) {
  c10::StorageImpl* storage = parameter.data.storage().unsafeGetStorageImpl();
  auto* keep = new c10::Storage(whole.storage());
  char* begin = static_cast<char*>(whole.mutable_data_ptr()) + offset * static_cast<int64_t>(whole.itemsize());
  const auto drop = [](void* kept) { delete static_cast<c10::Storage*>(kept); };
  storage->set_data_ptr_noswap(at::DataPtr(begin, keep, drop, whole.device()));
  storage->set_nbytes(parameter.data.nbytes());
}

void make_adjacent_values(std::span<Parameter* const> parameters) {
  const NoCostScope no_cost;
  const at::Tensor& first = parameters.front()->data;
  at::Tensor whole;
  {
    const MemoryScope memory(MemoryCategory::kParameters);
    whole = at::empty({static_cast<int64_t>(parameters.size()) * first.numel()}, first.options().requires_grad(false));
  }
  int64_t offset = 0;
  for (Parameter* parameter : parameters) {
    fill_initial(*parameter, 0, whole.narrow(0, offset, first.numel()));
    set_part(*parameter, whole, offset);
    parameter->unmade.reset();
    offset += first.numel();
  }
}

void make_values(const ParameterRegistry& registry) {
  if (registry.device().is_cuda()) {
    for (const auto& [key, matrices] : expert_matrices(registry)) make_adjacent_values(matrices);
  }
  for (Parameter* parameter : registry.parameters()) make_values(*parameter);
}

}  // namespace ranklab
