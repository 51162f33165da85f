// The largest difference of a tensor from another one, relative to the largest number of the other.
#pragma once

#include "core/sim/aten.h"

namespace ranklab {

inline double relative_error(const at::Tensor& got, const at::Tensor& want) {
  const double scale = want.to(at::kDouble).abs().max().item<double>();
  return (got.to(at::kDouble) - want.to(at::kDouble)).abs().max().item<double>() / (scale > 0 ? scale : 1.0);
}

}  // namespace ranklab
