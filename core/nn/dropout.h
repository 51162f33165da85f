// Dropout whose mask does not depend on the layout: the element (global sample, position, hidden column) of a layer
// draws its own number from a counter-based stream (core/base/numbers/philox.h), so tp, sp, dp and gradient
// accumulation change nothing. Cost: about 5 ns per element on a CPU, and the mask's memory; GPUs draw the numbers
// themselves (device_random.h). Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ranklab {

struct DropoutContext {
  uint64_t seed = 0;
  uint64_t step = 0;
  int64_t first_sample = 0;    // the first sample of dim B, as an index in the step's global batch
  int64_t first_position = 0;  // the position of dim S's first element (with sequence parallelism tp_rank * S_local)
  // The rank's positions under context parallelism; dim S begins with entry first_position of this list. Null: all
  // positions.
  std::shared_ptr<const std::vector<int64_t>> positions = nullptr;
  int64_t seq_length = 0;  // the model's longest sequence: the stride between samples
  // Step and first sample as a tensor on the device, where a pass is recorded (device_random.h); undefined: the fields
  // above apply.
  at::Tensor offset = {};
};

// The mask: 0 with probability p, else 1 / (1 - p), in the shape and dtype and on the device of x_SBH.
at::Tensor dropout_mask(const at::Tensor& x_SBH, const std::string& layer_name, double p,
                        const DropoutContext& context);
// x * mask; x itself when p is 0.
at::Tensor dropout(const at::Tensor& x_SBH, const std::string& layer_name, double p, const DropoutContext& context);

}  // namespace ranklab
