// The activations between layers. Legend: S positions (this rank's with sequence parallelism), B sequences, H hidden.
// Thread rule: plain data.
#pragma once
#include <ATen/core/Tensor.h>

namespace ranklab {

// The last branch has not been added yet, so that the addition can be fused with the next norm.
struct ResidualStream {
  at::Tensor x_SBH;
  at::Tensor branch_SBH = {};  // still to be added to x; undefined: none

  at::Tensor sum() const { return branch_SBH.defined() ? x_SBH.add(branch_SBH) : x_SBH; }
};

}  // namespace ranklab
