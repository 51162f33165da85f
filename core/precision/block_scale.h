// Computes the scale of a group of numbers from its amax. A number x is stored as the code nearest to x * inverse and
// dequantized as code * scale. Torch-free. Cost: a few operations. Thread rule: pure.
#pragma once
#include <span>

#include "core/precision/rounding_grid.h"
#include "core/precision/scale_maker.h"
#include "core/precision/tensor_precision.h"

namespace ranklab {

struct BlockScale {
  float scale = 1;
  float inverse = 1;  // 1 / scale; 0 if scale is 0
  bool operator==(const BlockScale&) const = default;
};

// `tensor_amax` is the amax of the whole tensor and is used only by kE4M3. A group of zeros has scale 1. If amax is not
// finite (for kE4M3 also tensor_amax), the scale is NaN, and so are all dequantized values: an overflow stays visible.
// Scales are fp32 numbers of at least 2^-126, for the E8M0 rules at least 2^-127: groups that would need smaller ones
// lose their last bits.
BlockScale block_scale(const TensorPrecision& precision, float amax, float tensor_amax);

// The same for all groups of a tensor; vectorized.
void block_scales(const TensorPrecision& precision, std::span<const float> amax, float tensor_amax,
                  std::span<BlockScale> scales);

// The tensor-wide fp32 factor of NVFP4's E4M3 scales: tensor_amax / (largest of the format x 448).
float tensor_scale(const TensorPrecision& precision, float tensor_amax);

// For callers with their own loops. REQUIRES: a signed format.
RoundingGrid rounding_grid(const NumberFormat& format);
ScaleMaker scale_maker(const TensorPrecision& precision, float tensor_amax);

}  // namespace ranklab
