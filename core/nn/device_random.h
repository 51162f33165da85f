// Dropout's random numbers drawn by a GPU's operators: the host would draw them more slowly than a GPU takes for the
// layer, and would wait for it to copy them there. Passes can be recorded as a graph (core/comm/graph_recorder.h): what
// differs from one microbatch to the next, the step and the first sample, is read
// from a tensor, as PyTorch's generators read their offset from one while a CUDA graph is captured. The numbers are
// those of RandomStream (core/base/numbers/philox.h), bit for bit. Cost: about 100 operators a mask, each over a number
// for every four elements of it (for each element, where rows do not begin at a multiple of four), in 64 bits; a large
// mask is drawn in parts. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

namespace ranklab {

// Where in dropout's streams a microbatch draws: [2] int64 on `device`.
at::Tensor random_offset(uint64_t step, int64_t first_sample, at::Device device);

class DeviceRandom {
 public:
  // The stream of this name at the offset's step.
  DeviceRandom(uint64_t seed, std::string_view name, const at::Tensor& offset);
  // [] int64: of the microbatch, in the step's global batch.
  at::Tensor first_sample() const;
  // [..., width] of the type and device of `like`: 0 with probability p, else 1 / (1 - p), for the elements `first`
  // [...] to first + width - 1 of the stream. `aligned`: all of `first` and `width` are multiples of four.
  at::Tensor dropout_mask(const at::Tensor& first, int64_t width, bool aligned, double p, const at::Tensor& like) const;

 private:
  at::Tensor bits(const at::Tensor& first, int64_t width, bool aligned) const;

  uint64_t key_;
  at::Tensor offset_, stream_;
};

}  // namespace ranklab
