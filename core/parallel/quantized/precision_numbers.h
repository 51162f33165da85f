// The statistics of a quantized tensor, indexed as in core/trace/precision_event.h. Cost: one pass over the tensor.
// Thread rule: pure.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "core/parallel/quantized/operand_rounding.h"

namespace ranklab {

// before: fp32 [R, C], dense.
std::vector<double> precision_numbers(const NumberFormat& format, const at::Tensor& before,
                                      const RoundedOperand& after);

}  // namespace ranklab
