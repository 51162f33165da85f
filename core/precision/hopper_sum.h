// How the tensor cores of Hopper add up products of FP8 numbers: 32 products and the sum so far are aligned to the
// largest exponent among them and cut off, toward zero, 13 bits below it; their sum is kept with 14 bits, cut off
// again. DeepSeek-V3 moves the sum to an fp32 register every 128 products and multiplies it with the scales there.
// Source: DeepSeek-V3, arXiv 2412.19437, sections 3.3.2 and 3.5.2; that the sum so far takes part in the alignment and
// that results have 13 fractional bits: MMA-Sim, arXiv 2511.10909. A model: an exponent here is that of the product, in
// hardware the sum of its factors'. Torch-free. Cost: about a nanosecond a product. Thread rule: pure.
#pragma once
#include <span>

#include "core/precision/quantize.h"

namespace ranklab {

// A rounded matrix without its scales: what the tensor core reads, and what its sums are multiplied with.
struct HopperOperand {
  MatrixView numbers;  // of the format: rows x what is summed over
  GroupShape groups = {};
  std::span<const BlockScale> scales = {};  // of each group; none: 1
};

// out[i * b.rows + j] = sum over k of a[i, k] b[j, k]. `promote`: every 128 products. REQUIRES: numbers of E4M3, E5M2
// or E2M1. Throws kInvalidArgument where a scale changes inside of a sum: within 128 columns, or at all without
// promotion.
void hopper_gemm(const HopperOperand& a, const HopperOperand& b, bool promote, float* out);

// What quantize_dequantize() gave, without the scales: exactly the format's numbers. out [rows, cols], dense.
void without_scales(const MatrixView& rounded, const GroupShape& groups, std::span<const BlockScale> scales,
                    const NumberFormat& format, float* out);

}  // namespace ranklab
