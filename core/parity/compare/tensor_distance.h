// The distance between two tensors: the root mean square of their difference relative to that of the reference, in
// units of the compute dtype's epsilon. Thread rule: pure.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "core/parity/global_slice.h"

namespace ranklab {

struct TensorDistance {
  double eps = 0;      // root mean square of the difference / that of the reference, in epsilons
  double largest = 0;  // largest difference of one element
  int64_t place = 0;   // index of that element in the flat global tensor
  double got = 0, want = 0;
};

struct PiecesApart {
  std::vector<std::optional<TensorDistance>> pieces = {};
  double largest = 0, together = 0;  // in epsilons: of the worst piece, and of all elements together
};

// Equal infinities and two NaNs do not differ; any other difference that is not finite becomes a large finite number.
at::Tensor difference(const at::Tensor& got, const at::Tensor& want);
// `apart`: the absolute differences; `rms`: that of the reference. Flat tensors of the same length.
TensorDistance distance_of(const at::Tensor& apart, const at::Tensor& got, const at::Tensor& want, double rms,
                           double epsilon, const GlobalSlice& slice);

}  // namespace ranklab
