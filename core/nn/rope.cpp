#include "core/nn/rope.h"

#include <ATen/ATen.h>

#include "core/sim/op_observer.h"

namespace ranklab {

RopeTable make_rope_table(int64_t seq_length, int64_t head_dim, double theta, const at::TensorOptions& options) {
  const NoCostScope no_cost;
  const auto f64 = at::TensorOptions().dtype(at::kDouble);
  const at::Tensor exponent = at::arange(0, head_dim, 2, f64) / static_cast<double>(head_dim);
  const at::Tensor frequency = at::pow(at::Scalar(theta), -exponent);
  const at::Tensor angle = at::outer(at::arange(seq_length, f64), frequency);
  return {angle.cos().to(options), angle.sin().to(options)};
}

// In the table's type: a 16-bit x is turned in fp32.
at::Tensor apply_rope(const at::Tensor& x_in, const RopeTable& table) {
  const at::Tensor x = x_in.to(table.cos_SD.scalar_type());
  const at::Tensor cos = table.cos_SD.narrow(0, 0, x.size(-2));
  const at::Tensor sin = table.sin_SD.narrow(0, 0, x.size(-2));
  const auto halves = x.chunk(2, -1);
  return at::cat({halves[0] * cos - halves[1] * sin, halves[0] * sin + halves[1] * cos}, -1).to(x_in.scalar_type());
}

}  // namespace ranklab
