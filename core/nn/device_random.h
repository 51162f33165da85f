// Dropout's random numbers, drawn with a GPU's operators: the host would draw them more slowly than the GPU computes
// the layer, and would wait to copy them there. Passes can be recorded as a graph (core/comm/graph_recorder.h): what
// differs between microbatches (the step and the first sample) is read from a tensor, just as PyTorch's generators read
// their offset from a tensor while a CUDA graph is captured. Stochastic rounding, whose numbers the kernels of
// core/precision/device_rounding.h draw, reads the same tensor. The numbers are those of RandomStream
// (core/base/numbers/philox.h), bit for bit. Cost: about 100 operators per mask, each over one 64-bit number for every
// four elements of the mask (for every element, where rows do not begin at a multiple of four); a large mask is drawn
// in parts. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace ranklab {

// Where a microbatch draws in the streams of dropout and stochastic rounding: [3] int64 on `device`.
at::Tensor random_offset(uint64_t step, int64_t first_sample, at::Device device);
// Its parts, [] int64: the first sample, as an index in the step's global batch, and
// RandomStream::step_key(kStochasticRounding).
at::Tensor first_sample_of(const at::Tensor& offset);
at::Tensor rounding_key_of(const at::Tensor& offset);

// The numbers as an int64 tensor [n] with these options, computed on its device from runs of equal steps, such as the
// positions of a rank under context parallelism, so that nothing is copied from the host.
at::Tensor from_runs(std::span<const int64_t> numbers, const at::TensorOptions& options);
// [count]: elements `first` to first + count - 1 of such a list of a rank's positions; null: of 0, 1, 2...
at::Tensor device_positions(const std::vector<int64_t>* positions, int64_t first, int64_t count,
                            const at::TensorOptions& options);

class DeviceRandom {
 public:
  // The stream with this name, at the offset's step.
  DeviceRandom(uint64_t seed, std::string_view name, const at::Tensor& offset);
  // [..., width] in the type and on the device of `like`: 0 with probability p, else 1 / (1 - p), for the stream's
  // elements from `first` [...] to first + width - 1. `aligned`: `width` and all of `first` are multiples of four.
  at::Tensor dropout_mask(const at::Tensor& first, int64_t width, bool aligned, double p, const at::Tensor& like) const;

 private:
  at::Tensor bits(const at::Tensor& first, int64_t width, bool aligned) const;

  uint64_t key_;
  at::Tensor stream_;
};

}  // namespace ranklab
