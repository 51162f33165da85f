#include "tests/support/gathered_tensors.h"

#include <algorithm>
#include <cstring>

#include "core/sim/aten.h"
#include "tests/cpu_sim/test_world.h"

namespace ranklab {
namespace {

const std::byte* bytes_of(const at::Tensor& t, int64_t element) {
  return static_cast<const std::byte*>(t.const_data_ptr()) + element * static_cast<int64_t>(t.element_size());
}

bool same_bits(const at::Tensor& a, int64_t of_a, const at::Tensor& b, int64_t of_b, int64_t count) {
  return std::memcmp(bytes_of(a, of_a), bytes_of(b, of_b), static_cast<size_t>(count) * a.element_size()) == 0;
}

bool is_zero(const at::Tensor& t, int64_t first, int64_t count) {
  return count == 0 || !t.narrow(0, first, count).any().item<bool>();
}

// Visits the elements [begin, end) of a rank's part as runs: `each` gets the position of a run in the whole tensor, its
// position in the part, and its number of elements; `padding` gets runs beyond the end of the whole tensor.
template <typename Each, typename Padding>
void for_each_run(const Partition& partition, int64_t begin, int64_t end, const Each& each, const Padding& padding) {
  const std::vector<int64_t>& shape = partition.global_shape;
  const auto dim = static_cast<size_t>(std::max(partition.dim, 0));
  const int64_t length = shape[dim], outer = c10::multiply_integers(shape.begin(), shape.begin() + dim),
                inner = c10::multiply_integers(shape.begin() + dim + 1, shape.end());
  auto ranges = partition.ranges;
  if (partition.replicated()) ranges = {{0, length}};
  int64_t at = 0;  // position in the part
  for (int64_t o = 0; o < outer; ++o) {
    for (const auto& [first, last] : ranges) {
      const int64_t there = std::clamp(length - first, int64_t{0}, last - first) * inner;
      const int64_t behind = at + (last - first) * inner, from = std::max(at, begin), to = std::min(at + there, end);
      if (from < to) each((o * length + first) * inner + from - at, from, to - from);
      const int64_t rest = std::max(at + there, begin), rest_end = std::min(behind, end);
      if (rest < rest_end) padding(rest, rest_end - rest);
      at = behind;
    }
  }
}

}  // namespace

void GatheredTensors::fault(const std::string& text, const StepTensor& key) {
  faults_.push_back(what_ + " of " + key.second + " at step " + std::to_string(key.first) + ": " + text);
}

// Stores elements [begin, begin + count) of `values` at `first`. RETURNS: whether elements that were already known have
// the same bits.
bool GatheredTensors::Whole::put(int64_t first, const at::Tensor& values, int64_t begin, int64_t count) {
  const auto element = static_cast<int64_t>(tensor.element_size());
  bool agrees = true;
  for (int64_t done = 0; done < count;) {
    const auto at = known.begin() + first + done;
    const int64_t run = std::find(at, known.begin() + first + count, !*at) - at;
    if (*at) {
      agrees = agrees && same_bits(tensor, first + done, values, begin + done, run);
    } else {
      std::memcpy(static_cast<std::byte*>(tensor.mutable_data_ptr()) + (first + done) * element,
                  bytes_of(values, begin + done), static_cast<size_t>(run * element));
      std::fill(at, at + run, true);
    }
    done += run;
  }
  return agrees;
}

void GatheredTensors::put(int64_t step, const Parameter& parameter, int64_t begin, const at::Tensor& flat) {
  const at::NoGradGuard no_grad;
  const at::Tensor values = kept(flat).contiguous();
  const StepTensor key{step, parameter.name};
  const std::lock_guard lock(mutex_);
  Whole& whole = tensors_[key];
  if (!whole.tensor.defined()) {
    whole.tensor = at::zeros(parameter.partition.global_shape, values.options());
    whole.known.resize(static_cast<size_t>(whole.tensor.numel()));
  }
  bool agrees = true, padded = true;
  for_each_run(
      parameter.partition, begin, begin + values.numel(),
      [&](int64_t first, int64_t from, int64_t count) {
        agrees = whole.put(first, values, from - begin, count) && agrees;
      },
      [&](int64_t from, int64_t count) { padded = padded && is_zero(values, from - begin, count); });
  if (!agrees) fault("copies differ", key);
  if (!padded) fault("padding is not zero", key);
}

StepTensors GatheredTensors::take() {
  StepTensors out;
  for (auto& [key, whole] : tensors_) {
    if (!std::ranges::all_of(whole.known, [](bool known) { return known; })) fault("elements are on no rank", key);
    out[key] = whole.tensor;
  }
  return out;
}

}  // namespace ranklab
