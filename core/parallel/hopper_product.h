// A product of rounded operands whose sums are kept as Hopper's tensor cores keep them (core/precision/hopper_sum.h).
// Cost: about a nanosecond a multiplication. Legend: [M, K] [N, K] -> [M, N]. Thread rule: pure.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/parallel/operand_rounding.h"

namespace ranklab {

// An operand as [rows, K], or as it lies with K first.
struct HopperSide {
  const RoundedOperand& operand;
  const NumberFormat& format;
  bool k_first = false;
};

// Sums move to fp32 every 128 products, or never. Throws kInvalidArgument where a scale changes inside of a sum.
at::Tensor hopper_product(const HopperSide& a, const HopperSide& b, bool promote);

}  // namespace ranklab
