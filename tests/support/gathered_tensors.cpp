#include "tests/support/gathered_tensors.h"

#include <algorithm>

#include "core/sim/aten.h"
#include "tests/cpu_sim/test_world.h"

namespace ranklab {
namespace {

// The rank's part with these elements in it, and which of its elements they are; no mask: all.
struct Part {
  at::Tensor values, mask;
};

Part part_of(const Partition& partition, int64_t begin, const at::Tensor& flat) {
  const std::vector<int64_t> shape = local_shape(partition);
  if (flat.numel() == c10::multiply_integers(shape)) return {flat.view(shape), {}};
  Part part{at::zeros(shape, flat.options()), at::zeros(shape, at::kBool)};
  part.values.view({-1}).narrow(0, begin, flat.numel()).copy_(flat);
  part.mask.view({-1}).narrow(0, begin, flat.numel()).fill_(true);
  return part;
}

bool any(const at::Tensor& flags) { return flags.any().item<bool>(); }

// Elements of the whole, in one range of a rank's part, as the rank has them.
bool merge(const at::Tensor& whole, const at::Tensor& known, const at::Tensor& values, const at::Tensor& mask) {
  if (!mask.defined() && known.all().item<bool>()) return at::equal(whole, values);
  const at::Tensor there = mask.defined() ? known.logical_and(mask) : known;
  const bool agrees = !any(there.logical_and(whole.ne(values)));
  if (mask.defined()) {
    whole.copy_(at::where(mask, values, whole));
    known.logical_or_(mask);
  } else {
    whole.copy_(values);
    known.fill_(true);
  }
  return agrees;
}

}  // namespace

void GatheredTensors::fault(const std::string& text, const StepTensor& key) {
  faults_.push_back(what_ + " of " + key.second + " at step " + std::to_string(key.first) + ": " + text);
}

void GatheredTensors::put(int64_t step, const Parameter& parameter, int64_t begin, const at::Tensor& flat) {
  const at::NoGradGuard no_grad;
  const Part part = part_of(parameter.partition, begin, kept(flat));
  const std::vector<int64_t>& shape = parameter.partition.global_shape;
  const int64_t dim = std::max(parameter.partition.dim, 0), length = shape[static_cast<size_t>(dim)];
  auto ranges = parameter.partition.ranges;
  if (parameter.partition.replicated()) ranges = {{0, length}};
  const StepTensor key{step, parameter.name};
  const std::lock_guard lock(mutex_);
  Whole& whole = tensors_[key];
  if (!whole.tensor.defined()) whole = {at::zeros(shape, part.values.options()), at::zeros(shape, at::kBool)};
  int64_t at = 0;
  for (const auto& [first, last] : ranges) {
    const int64_t there = std::clamp(length - first, int64_t{0}, last - first);  // the rest is padding
    const auto here = [&](const at::Tensor& t) { return t.defined() ? t.narrow(dim, at, there) : t; };
    const auto global = [&](const at::Tensor& t) { return t.narrow(dim, std::min(first, length), there); };
    if (!merge(global(whole.tensor), global(whole.known), here(part.values), here(part.mask)))
      fault("copies differ", key);
    if (there < last - first && any(part.values.narrow(dim, at + there, last - first - there).ne(0)))
      fault("padding is not zero", key);
    at += last - first;
  }
}

StepTensors GatheredTensors::take() {
  StepTensors out;
  for (auto& [key, whole] : tensors_) {
    if (!whole.known.all().item<bool>()) fault("elements are on no rank", key);
    out[key] = whole.tensor;
  }
  return out;
}

}  // namespace ranklab
