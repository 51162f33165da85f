// Numbers that the host computes for its rank's tensors, such as counts and orders of rows. For a GPU they are in
// pinned memory, from which they are copied without the host waiting. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/sim/aten.h"

namespace ranklab {

// To be filled by the host and then sent with sent_to().
inline at::Tensor host_numbers(int64_t size, at::ScalarType type, const at::Device& device) {
  return at::empty({size}, at::TensorOptions(type).pinned_memory(device.is_cuda()));
}

inline at::Tensor sent_to(const at::Device& device, const at::Tensor& numbers) {
  return numbers.to(device, numbers.scalar_type(), /*non_blocking=*/true);
}

}  // namespace ranklab
