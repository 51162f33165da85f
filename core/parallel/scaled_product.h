// The product of two operands that a GPU's FP8 units can multiply as codes: cuBLAS and CUTLASS through LibTorch's
// _scaled_mm, with one scale a tensor or one a row; sums are fp32. Tiles and blocks are multiplied as dequantized
// numbers. Source: at::_scaled_mm of LibTorch 2.11; NVIDIA cuBLAS, 8-bit floating point data types. Cost: one product
// in 8 bits, and a copy of codes that lie the other way. Thread rule: pure.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/parallel/operand_rounding.h"

namespace ranklab {

enum class ScaledMmForm {
  kNone,
  kTensorWise,  // a scale each
  kRowWise,     // a scale for each row of the left, each column of the right
};

// left [m, k], right [k, n]. `capability` is the GPU's, 90 for 9.0; 0: no GPU.
ScaledMmForm scaled_mm_form(const TensorPrecision& left, const TensorPrecision& right, int64_t m, int64_t k, int64_t n,
                            int capability);

// An operand as [rows, K] or with K first.
struct CodedSide {
  const RoundedOperand& operand;
  const TensorPrecision& precision;
  bool k_first = false;
};

// As _scaled_mm wants them: a [m, K] by rows, b [K, n] by columns, scales [] or [m, 1] and [1, n].
struct ScaledMmOperands {
  at::Tensor a, b, scale_a, scale_b;
  at::ScalarType type;  // of the result: row-wise bf16 alone
};
// REQUIRES: a form that scaled_mm_form() gave for them.
ScaledMmOperands scaled_mm_operands(const CodedSide& left, const CodedSide& right, ScaledMmForm form,
                                    at::ScalarType type);

// left [m, K] right [n, K]^T -> [m, n].
at::Tensor scaled_product(const CodedSide& left, const CodedSide& right, ScaledMmForm form, at::ScalarType type);

// The same of any quantized operands on a device: by its units where they can, else of the numbers read back, in bf16
// where the result is.
at::Tensor device_product(const CodedSide& left, const CodedSide& right, int capability, at::ScalarType type);

}  // namespace ranklab
