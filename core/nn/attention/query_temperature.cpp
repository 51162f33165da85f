#include "core/nn/attention/query_temperature.h"

#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {

at::Tensor query_temperatures(int64_t positions, double scale, int64_t floor, const at::TensorOptions& options) {
  const at::Tensor steps = at::arange(1, positions + 1, options.dtype(at::kLong)).floor_divide(floor).to(at::kDouble);
  return ((steps + 1).log() * scale + 1).to(options.dtype().toScalarType());
}

at::Tensor with_temperature(const at::Tensor& x, int64_t columns, const at::Tensor& table_S,
                            const at::Tensor& positions) {
  if (!table_S.defined()) return x;
  at::Tensor factor;
  {
    const NoCostScope few;
    const at::Tensor of_rows = table_S.index_select(0, positions.reshape({-1}));
    factor = positions.dim() == 1 ? of_rows.view({-1, 1, 1}) : of_rows.view(positions.sizes()).t().unsqueeze(-1);
  }
  const at::Tensor queries = (x.narrow(-1, 0, columns) * factor).to(x.scalar_type());
  const int64_t rest = x.size(-1) - columns;
  return rest == 0 ? queries : at::cat({queries, x.narrow(-1, columns, rest)}, -1);
}

}  // namespace ranklab
