// The product of two operands that a GPU's FP8 units can multiply as codes: cuBLAS and CUTLASS through LibTorch's
// _scaled_mm, with one scale a tensor or one a row; sums are fp32. Tiles and blocks are multiplied as dequantized
// numbers. Source: at::_scaled_mm of LibTorch 2.11; NVIDIA cuBLAS, 8-bit floating point data types. Cost: one product in
// 8 bits, and a copy of codes that lie the other way. Thread rule: pure.
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

// An operand with codes, as [rows, K] or with K first.
struct CodedSide {
  const RoundedOperand& operand;
  bool k_first = false;
};

// left [m, K] right^T [n, K] -> [m, n]. REQUIRES: a form that scaled_mm_form() gave; row-wise results are bf16.
at::Tensor scaled_product(const CodedSide& left, const CodedSide& right, ScaledMmForm form, at::ScalarType type);

}  // namespace ranklab
