#include "core/parallel/quantized/hadamard_transform.h"

#include "core/sim/aten.h"

namespace ranklab {
namespace {

at::Tensor padded(const at::Tensor& matrix) {
  const int64_t padding = (kHadamardRows - matrix.size(0) % kHadamardRows) % kHadamardRows;
  return at::constant_pad_nd(matrix.to(at::kFloat), {0, 0, 0, padding}).contiguous();
}

// [kHadamardRows, 1], 1 or -1, computed from a number whose bits are the signs: copied from the host, they would make
// it wait, and a CUDA graph would read them where they no longer are.
at::Tensor signs_on(const RandomHadamard& hadamard, at::Device device) {
  static_assert(kHadamardRows < 64);
  int64_t negative = 0;
  for (int64_t row = 0; row < kHadamardRows; ++row)
    negative |= static_cast<int64_t>(hadamard.signs()[static_cast<size_t>(row)] < 0) << row;
  const at::Tensor row = at::arange(kHadamardRows, at::TensorOptions(at::kLong).device(device)).unsqueeze(1);
  const at::Tensor bit = at::full_like(row, negative).bitwise_right_shift(row).bitwise_and(1);
  return bit.mul(-2).add(1).to(at::kFloat);
}

}  // namespace

at::Tensor hadamard_transform(const RandomHadamard& hadamard, const at::Tensor& matrix) {
  if (!matrix.is_cpu() && !matrix.is_meta()) return hadamard_transform_by_tensors(hadamard, matrix);
  at::Tensor out = padded(matrix);
  if (out.is_meta()) return out;
  hadamard.transform({out.const_data_ptr<float>(), out.size(0), out.size(1), out.size(1)},
                     out.mutable_data_ptr<float>());
  return out;
}

at::Tensor hadamard_transform_by_tensors(const RandomHadamard& hadamard, const at::Tensor& matrix) {
  const at::Tensor x = padded(matrix);
  at::Tensor transformed = x.view({-1, kHadamardRows, x.size(1)}) * signs_on(hadamard, x.device());
  for (int64_t half = 1; half < kHadamardRows; half *= 2) {
    const at::Tensor pairs = transformed.view({-1, 2, half, x.size(1)});
    const at::Tensor a = pairs.select(1, 0), b = pairs.select(1, 1);
    transformed = at::stack({a + b, a - b}, 1);
  }
  return transformed.view(x.sizes()) * 0.25;
}

}  // namespace ranklab
