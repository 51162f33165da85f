// Numbers that the host makes for its rank's tensors, as counts and orders of rows: for a GPU in pinned memory, from
// which they travel without the host waiting. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/sim/aten.h"

namespace ranklab {

// To be filled by the host, then sent.
inline at::Tensor host_numbers(int64_t size, at::ScalarType type, const at::Device& device) {
  return at::empty({size}, at::TensorOptions(type).pinned_memory(device.is_cuda()));
}

inline at::Tensor sent_to(const at::Device& device, const at::Tensor& numbers) {
  return numbers.to(device, numbers.scalar_type(), /*non_blocking=*/true);
}

}  // namespace ranklab
