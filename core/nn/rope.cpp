#include "core/nn/rope.h"

#include <vector>

#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {

RopeTable rope_for(const RopeTable& table, int64_t seq_length) {
  return table.lengths ? table.lengths->of(seq_length) : table;
}

at::Tensor rope_frequencies(int64_t head_dim, double theta) {
  const NoCostScope no_cost;
  const auto f64 = at::TensorOptions().dtype(at::kDouble);
  return at::pow(at::Scalar(theta), -at::arange(0, head_dim, 2, f64) / static_cast<double>(head_dim));
}

RopeTable make_rope_table(int64_t seq_length, const at::Tensor& frequencies, int64_t unrotated_dim, double scale,
                          const at::TensorOptions& options) {
  const NoCostScope no_cost;
  if (options.device().is_meta()) {  // computing angles that nobody reads took a fifth of a plan's time
    const std::vector<int64_t> sizes = {seq_length, frequencies.size(0) + unrotated_dim / 2};
    return {at::empty(sizes, options), at::empty(sizes, options)};
  }
  const at::Tensor angle = at::outer(at::arange(seq_length, frequencies.options()), frequencies);
  const auto beside = [&](const at::Tensor& rotated, double value) {
    return unrotated_dim == 0 ? rotated : at::constant_pad_nd(rotated, {0, unrotated_dim / 2}, value);
  };
  return {beside(angle.cos() * scale, 1).to(options), beside(angle.sin() * scale, 0).to(options)};
}

RopeTable make_rope_table(int64_t seq_length, int64_t head_dim, double theta, const at::TensorOptions& options) {
  return make_rope_table(seq_length, rope_frequencies(head_dim, theta), 0, 1.0, options);
}

RopeTable rope_at(const RopeTable& table, const at::Tensor& positions) {
  if (!table.defined()) return table;
  const NoCostScope once;  // a kernel would read the rows where they are
  const auto rows = [&](const at::Tensor& x_SD) {
    const at::Tensor taken = x_SD.index_select(0, positions.reshape({-1}));
    return positions.dim() == 1 ? taken : taken.view({positions.size(0), 1, positions.size(1), -1});
  };
  return {rows(table.cos_SD), rows(table.sin_SD)};
}

// Computed in the table's type: a 16-bit x is rotated in fp32.
at::Tensor apply_rope(const at::Tensor& x_in, const RopeTable& table) {
  if (!table.defined()) return x_in;
  const at::Tensor x = x_in.to(table.cos_SD.scalar_type());
  const at::Tensor cos = table.cos_SD.narrow(-2, 0, x.size(-2));
  const at::Tensor sin = table.sin_SD.narrow(-2, 0, x.size(-2));
  const auto halves = x.chunk(2, -1);
  // Where halves have one element, cat() may choose the channels-last layout. Attention kernels read the elements of a
  // head contiguously and do not check the strides.
  return at::cat({halves[0] * cos - halves[1] * sin, halves[0] * sin + halves[1] * cos}, -1)
      .contiguous()
      .to(x_in.scalar_type());
}

}  // namespace ranklab
