// An operand of a product rounded on a GPU, as operand_rounding.h does it on a CPU: magnitudes, scales and numbers stay
// on the device, ranks agree by collectives of device tensors, and nothing waits for the GPU. Cost: one pass over
// tiles and squares, else one for the magnitudes and one for the numbers; as the kernels of device_rounding.h. Thread
// rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/parallel/operand_rounding.h"
#include "core/precision/device_rounding.h"

namespace ranklab {

// What a product of codes takes: float8.
constexpr int kCodeBits = 8;

// The matrix is where `device` works.
RoundedOperand round_on_device(const at::Tensor& matrix, const OperandRounding& how, const DeviceRounding& device);

// Whether an operand can be codes of float8 with one scale for all, or one for each row that a product sums over.
bool codes_fit(const OperandRounding& how);

// The operand's values fp32 [R, C], from its codes where it has those.
at::Tensor values_of(const RoundedOperand& operand);

// A copy on the host, with values, scales and amax (if it has one); waits for the device.
RoundedOperand on_host(const RoundedOperand& operand);

}  // namespace ranklab
