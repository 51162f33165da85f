// Rounds an operand of a product on a GPU, as operand_rounding.h does on a CPU: amax, scales and values stay on the
// device, ranks agree by collectives of device tensors, and the host does not wait for the GPU. Cost: for tiles and
// blocks, one pass for the values; otherwise one pass for the amax, if no scale is given, and one pass to round. Uses
// the kernels of device_rounding.h. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/parallel/quantized/operand_rounding.h"
#include "core/precision/device_rounding.h"

namespace ranklab {

// Bits of the codes that a quantized product takes (float8).
constexpr int kCodeBits = 8;

// The type of tensors of 8-bit codes.
at::ScalarType code_type(const NumberFormat& format);

// The kernels that round tensors like x; null: the host's loops are used (operand_rounding.h).
const DeviceRounding* rounding_of(const at::Tensor& x);

// REQUIRES: `matrix` is on the device of `device`.
RoundedOperand round_on_device(const at::Tensor& matrix, const OperandRounding& how, const DeviceRounding& device);

// Charges the virtual clock for round_operand() of an operand that was already written by an earlier rounding with this
// scale [1].
void charge_rounding(const at::Tensor& matrix, const OperandRounding& how, const at::Tensor& scale);

// Whether an operand is stored as float8 codes. That is the case with one scale per tensor, with one scale per row over
// which the product sums, and, on a GPU whose products support them, with one scale per 128 elements of such a row or
// per square of 128. `capability`: the GPU's compute capability.
bool codes_fit(const OperandRounding& how, int capability);

// The scales [groups] of a matrix [rows, cols], in a shape that broadcasts to it.
at::Tensor scales_for(const at::Tensor& of_groups, const GroupShape& groups, int64_t rows, int64_t cols);

// The operand's values, fp32 [R, C], dequantized if it has codes.
at::Tensor values_of(const RoundedOperand& operand);

// A copy on the host, with values, scales and, if it has one, amax; waits for the device.
RoundedOperand on_host(const RoundedOperand& operand);

}  // namespace ranklab
