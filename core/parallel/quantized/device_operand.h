// Rounds an operand of a product on a GPU, as operand_rounding.h does on a CPU: amax, scales and values stay on the
// device, ranks agree by collectives of device tensors, and nothing waits for the GPU. Cost: one pass for the values of
// tiles and blocks, else one for the amax, if no scale is given, and one to round, by the kernels of device_rounding.h.
// Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/parallel/quantized/operand_rounding.h"
#include "core/precision/device_rounding.h"

namespace ranklab {

// Bits of the codes that a quantized product takes: float8.
constexpr int kCodeBits = 8;

// What rounds tensors like x; null: the loops of the host (operand_rounding.h).
const DeviceRounding* rounding_of(const at::Tensor& x);

// REQUIRES: `matrix` is on the device of `device`.
RoundedOperand round_on_device(const at::Tensor& matrix, const OperandRounding& how, const DeviceRounding& device);

// Charges what round_operand() would cost for an operand that an earlier rounding, with this scale [1], wrote as well.
void charge_rounding(const at::Tensor& matrix, const OperandRounding& how, const at::Tensor& scale);

// Whether an operand is stored as float8 codes: with one scale per tensor, one per row that a product sums over, or, on
// a GPU whose products take them, one per 128 of such a row or per square of 128. `capability`: the GPU's.
bool codes_fit(const OperandRounding& how, int capability);

// The operand's values, fp32 [R, C], dequantized if it has codes.
at::Tensor values_of(const RoundedOperand& operand);

// A copy on the host, with values, scales and amax (if it has one); waits for the device.
RoundedOperand on_host(const RoundedOperand& operand);

}  // namespace ranklab
