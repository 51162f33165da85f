// A model of how Hopper's tensor cores add up products of FP8 numbers: 32 products and the running sum are aligned to
// the largest exponent among them and truncated, toward zero, 13 bits below it; their sum is truncated to 14 bits.
// DeepSeek-V3 moves the sum to an fp32 register every 128 products and applies the scales there. Source: DeepSeek-V3,
// arXiv 2412.19437, sections 3.3.2 and 3.5.2; that the running sum takes part in the alignment and that results have 13
// fractional bits: MMA-Sim, arXiv 2511.10909. Unlike the hardware, which adds the factors' exponents, the model takes
// the exponent of the product. Torch-free. Cost: about a nanosecond per product. Thread rule: pure.
#pragma once
#include <span>

#include "core/precision/quantize.h"

namespace ranklab {

// A quantized matrix: the numbers that the tensor core reads, and the scales that its sums are multiplied with.
struct HopperOperand {
  MatrixView numbers;  // numbers of the format: rows x the dimension that is summed over
  GroupShape groups = {};
  std::span<const BlockScale> scales = {};  // per group; empty: 1
};

// out[i * b.rows + j] = sum over k of a[i, k] b[j, k]. `promote`: move the sum every 128 products. REQUIRES: numbers of
// E4M3, E5M2 or E2M1. Throws kInvalidArgument if a scale changes within a sum: within 128 columns, or at all without
// promotion.
void hopper_gemm(const HopperOperand& a, const HopperOperand& b, bool promote, float* out);

// Divides the output of quantize_dequantize() by the scales: gives exactly the format's numbers. out [rows, cols],
// dense.
void without_scales(const MatrixView& rounded, const GroupShape& groups, std::span<const BlockScale> scales,
                    const NumberFormat& format, float* out);

}  // namespace ranklab
