// The scale of a group of numbers from their largest magnitude. A number x is held as the code nearest to x * inverse
// and read back as code * scale. Torch-free. Cost: a few operations. Thread rule: pure.
#pragma once
#include <span>

#include "core/precision/rounding_grid.h"
#include "core/precision/scale_maker.h"
#include "core/precision/tensor_precision.h"

namespace ranklab {

struct BlockScale {
  float scale = 1;
  float inverse = 1;  // 1 / scale; 0 when the scale is
  bool operator==(const BlockScale&) const = default;
};

// `tensor_amax`: of the whole tensor, which only kE4M3 reads. A group of zeros has scale 1. When amax is not finite (of
// kE4M3 also tensor_amax) the scale is NaN, and so is everything read back: an overflow stays visible. Scales are fp32
// numbers of at least 2^-126, of the E8M0 rules at least 2^-127: smaller groups lose their last bits.
BlockScale block_scale(const TensorPrecision& precision, float amax, float tensor_amax);

// The same for all groups of a tensor, fast.
void block_scales(const TensorPrecision& precision, std::span<const float> amax, float tensor_amax,
                  std::span<BlockScale> scales);

// The fp32 number above the E4M3 scales of NVFP4: tensor_amax / (largest of the format x 448).
float tensor_scale(const TensorPrecision& precision, float tensor_amax);

// For loops of one's own. REQUIRES: a format with a sign.
RoundingGrid rounding_grid(const NumberFormat& format);
ScaleMaker scale_maker(const TensorPrecision& precision, float tensor_amax);

}  // namespace ranklab
