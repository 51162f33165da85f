#include "core/parity/compare/tensor_distance.h"

#include <limits>

#include "core/parity/whole_tensor.h"
#include "core/sim/aten.h"

namespace ranklab {

at::Tensor difference(const at::Tensor& got, const at::Tensor& want) {
  const at::Tensor same = got.eq(want).logical_or(got.isnan().logical_and(want.isnan()));
  const at::Tensor d = (got - want).masked_fill(same, 0);
  return d.masked_fill(d.isfinite().logical_not(), std::numeric_limits<double>::max() / 1e200);
}

TensorDistance distance_of(const at::Tensor& apart, const at::Tensor& got, const at::Tensor& want, double rms,
                           double epsilon, const GlobalSlice& slice) {
  const int64_t worst = apart.argmax().item<int64_t>();
  const double largest = apart[worst].item<double>();
  if (largest == 0) return {};
  return {.eps = root_mean_square(apart) / (rms > 0 ? rms : std::numeric_limits<double>::min()) / epsilon,
          .largest = largest,
          .place = slice.index()[worst].item<int64_t>(),
          .got = got[worst].item<double>(),
          .want = want[worst].item<double>()};
}

}  // namespace ranklab
