#include "core/parity/whole_tensor.h"

#include <cmath>

#include "core/sim/aten.h"

namespace ranklab {

double root_mean_square(const at::Tensor& values) {
  return values.numel() == 0 ? 0 : std::sqrt(values.square().mean().item<double>());
}

WholeTensor put_together(const std::vector<TensorPiece>& pieces) {
  const GlobalSlice& first = pieces.front().slice;
  WholeTensor whole{.values = at::zeros({first.global_elements()}, at::kDouble),
                    .known = at::zeros({first.global_elements()}, at::kBool),
                    .shape = first.shape};
  for (const TensorPiece& piece : pieces) {
    const at::Tensor index = piece.slice.index(), real = index.ge(0);
    const at::Tensor places = index.masked_select(real);
    whole.values.index_copy_(0, places, piece.value.to(at::kDouble).masked_select(real));
    whole.known.index_fill_(0, places, true);
  }
  const at::Tensor finite = whole.values.isfinite();
  whole.finite = finite.all().item<bool>();
  whole.rms = root_mean_square(whole.values.masked_select(whole.known.logical_and(finite)));
  return whole;
}

}  // namespace ranklab
