// Changes numbers by one unit in the last place, up or down, as rounding may change them. Thread rule: pure.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/base/numbers/philox.h"
#include "core/parity/global_slice.h"

namespace ranklab {

// `values` are the elements of `slice`, flat. The signs are drawn by the element's index in the global tensor, so that
// all copies of an element change alike. `unit`: relative to the number.
void move_by_one_unit(const at::Tensor& values, const GlobalSlice& slice, double unit, const RandomStream& stream);

}  // namespace ranklab
