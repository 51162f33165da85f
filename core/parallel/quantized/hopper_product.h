// The product of rounded operands with sums in the precision of Hopper's tensor cores (core/precision/hopper_sum.h).
// Cost: about a nanosecond per multiplication. Legend: [M, K] [N, K] -> [M, N]. Thread rule: pure.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/parallel/quantized/operand_rounding.h"

namespace ranklab {

// An operand of a product.
struct HopperSide {
  const RoundedOperand& operand;
  const NumberFormat& format;
};

// `promote`: sums move to fp32 after every 128 products; otherwise never. Throws kInvalidArgument if a scale changes
// within a sum.
at::Tensor hopper_product(const HopperSide& a, const HopperSide& b, bool promote);

}  // namespace ranklab
