#include "core/parallel/quantized/hadamard_transform.h"

#include "core/sim/aten.h"

namespace ranklab {
namespace {

at::Tensor padded(const at::Tensor& matrix) {
  const int64_t padding = (kHadamardRows - matrix.size(0) % kHadamardRows) % kHadamardRows;
  return at::constant_pad_nd(matrix.to(at::kFloat), {0, 0, 0, padding}).contiguous();
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
  at::Tensor signs = at::empty({kHadamardRows, 1}, at::kFloat);
  std::ranges::copy(hadamard.signs(), signs.mutable_data_ptr<float>());
  at::Tensor transformed = x.view({-1, kHadamardRows, x.size(1)}) * signs.to(x.device());
  for (int64_t half = 1; half < kHadamardRows; half *= 2) {
    const at::Tensor pairs = transformed.view({-1, 2, half, x.size(1)});
    const at::Tensor a = pairs.select(1, 0), b = pairs.select(1, 1);
    transformed = at::stack({a + b, a - b}, 1);
  }
  return transformed.view(x.sizes()) * 0.25;
}

}  // namespace ranklab
