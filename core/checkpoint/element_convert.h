// Converts elements between float types: through fp64, which represents each of them exactly, then rounded to nearest,
// ties to even; overflow becomes infinity, as in IEEE 754, and a NaN stays a NaN. So converting to a type that holds
// all values of the source, and back, is bit-exact. Cost: a few operations per element. Thread rule: pure functions.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/checkpoint/tensor_type.h"

namespace ranklab {

// Whether tensors can be written as this type: F64, F32, BF16, F16.
bool is_float_target(TensorType type);

// The bits of `value` as a 16-bit float.
uint16_t to_bf16(float value);
uint16_t to_fp16(float value);

// `from` is any float type; `to` one of is_float_target(). Returns the bytes unchanged when both are the same. Throws
// kInvalidArgument for other types.
std::vector<std::byte> convert_elements(TensorType from, std::span<const std::byte> bytes, TensorType to);

}  // namespace ranklab
