// Elements of one float type as another's: through fp64, which holds every one of them exactly, then rounded to the
// nearest, ties to even; what is too large becomes infinity, as IEEE 754 has it, and a NaN stays one. So a type that
// holds all values of another gives them back bit for bit. Cost: a few operations an element.
// Thread rule: pure functions.
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

// `from` is any float type; `to` one of is_float_target(). The bytes themselves when both are the same. Throws
// kInvalidArgument for other types.
std::vector<std::byte> convert_elements(TensorType from, std::span<const std::byte> bytes, TensorType to);

}  // namespace ranklab
