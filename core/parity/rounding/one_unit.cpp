#include "core/parity/rounding/one_unit.h"

#include "core/sim/aten.h"

namespace ranklab {

void move_by_one_unit(const at::Tensor& values, const GlobalSlice& slice, double unit, const RandomStream& stream) {
  const at::Tensor index = slice.index(), signs = at::empty({index.numel()}, at::kDouble);
  double* out = signs.mutable_data_ptr<double>();
  const int64_t* place = index.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < index.numel(); ++i)
    out[i] = (stream.bits(static_cast<uint64_t>(place[i])) & 1) != 0 ? unit : -unit;
  values.add_(values * signs.to(values.device(), values.scalar_type()));
}

}  // namespace ranklab
