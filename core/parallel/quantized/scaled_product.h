// The product of two FP8 operands on a GPU's FP8 units: cuBLAS and CUTLASS through LibTorch's _scaled_mm, with one
// scale per tensor, per row, or, on Hopper, per 128 elements of a row and per square of 128 (DeepSeek-V3). Partial sums
// are moved to fp32 regularly, or, on request, stay in the 14 bits of Hopper's units (cuBLAS's fast accumulation).
// Other operands are dequantized and multiplied. Source: at::_scaled_mm of LibTorch 2.11; NVIDIA cuBLAS, 8-bit floating
// point data types. Cost: one 8-bit product. Thread rule: pure.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/parallel/quantized/operand_rounding.h"

namespace ranklab {

enum class ScaledMmForm {
  kNone,
  kTensorWise,  // one scale per operand
  kRowWise,     // one scale per row of the left operand and per column of the right
  kGroupWise,   // one scale per 128 elements of the dimension summed over, for each row or for 128 rows
};

// left [m, k], right [k, n]. `capability`: the GPU's compute capability, 90 for 9.0; 0: no GPU.
ScaledMmForm scaled_mm_form(const TensorPrecision& left, const TensorPrecision& right, int64_t m, int64_t k, int64_t n,
                            int capability);

// An operand of a product.
struct CodedSide {
  const RoundedOperand& operand;
  const TensorPrecision& precision;
};

// The arguments of _scaled_mm: a [m, K] row-major, b [K, n] column-major; scales [], or [m, 1] and [1, n], or for
// groups [m, K/128] column-major or [m/128, K/128] row-major, and for b the same of its transpose, transposed.
struct ScaledMmOperands {
  at::Tensor a, b, scale_a, scale_b;
  at::ScalarType type;  // type of the result: row-wise only bf16
};
// REQUIRES: `form` is scaled_mm_form() of these operands.
ScaledMmOperands scaled_mm_operands(const CodedSide& left, const CodedSide& right, ScaledMmForm form,
                                    at::ScalarType type);

// left [m, K] right [n, K]^T -> [m, n].
at::Tensor scaled_product(const CodedSide& left, const CodedSide& right, ScaledMmForm form, at::ScalarType type,
                          SumPrecision sum = SumPrecision::kFp32);

// The same for any quantized operands on a device: on its FP8 units if they support the operands, else as a product of
// the dequantized values, in bf16 if the result is bf16. Throws kInvalidArgument if `sum` is not kFp32 and this product
// or this GPU does not support such sums.
at::Tensor device_product(const CodedSide& left, const CodedSide& right, int capability, at::ScalarType type,
                          SumPrecision sum = SumPrecision::kFp32);

}  // namespace ranklab
