// Dropout whose mask does not depend on the layout: element (global sample, position, hidden column) of a layer draws
// its own number from a counter-based stream (core/base/philox.h), so tp, sp, dp and gradient accumulation all drop the
// same elements. Cost: about 5 ns an element on a CPU, and the mask's memory. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

namespace ranklab {

struct DropoutPlace {
  uint64_t seed = 0;
  uint64_t step = 0;
  int64_t first_sample = 0;    // of dim B in the global batch of the step
  int64_t first_position = 0;  // of dim S (a sequence-parallel rank starts at tp_rank * S_local)
  int64_t seq_length = 0;      // the model's longest sequence: the stride between samples
};

// 0 with probability p, else 1 / (1 - p); x_SBH gives shape, dtype and device.
at::Tensor dropout_mask(const at::Tensor& x_SBH, const std::string& layer_name, double p, const DropoutPlace& place);
// x * mask; x itself when p is 0.
at::Tensor dropout(const at::Tensor& x_SBH, const std::string& layer_name, double p, const DropoutPlace& place);

}  // namespace ranklab
