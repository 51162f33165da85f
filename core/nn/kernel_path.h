// Which tensors the row kernels serve, and the dtype word that costs and traces use. Everything else takes the path of
// plain ATen ops. Thread rule: pure functions.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/base/dtype.h"

namespace ranklab {

inline bool has_row_kernels(const at::Tensor& x) {
  return x.is_cpu() && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble);
}

inline DType dtype_of(const at::Tensor& x) {
  switch (x.scalar_type()) {
    case at::kFloat:
      return DType::kFloat32;
    case at::kDouble:
      return DType::kFloat64;
    case at::kBFloat16:
      return DType::kBFloat16;
    case at::kHalf:
      return DType::kFloat16;
    default:
      return DType::kOther;
  }
}

inline double bytes_of(const at::Tensor& x) {
  return static_cast<double>(x.numel()) * static_cast<double>(x.itemsize());
}

// Calls f.template operator()<T>() with the C++ type of a tensor that has row kernels.
template <typename F>
void for_kernel_type(const at::Tensor& x, F&& f) {
  if (x.scalar_type() == at::kDouble) {
    f.template operator()<double>();
  } else {
    f.template operator()<float>();
  }
}

}  // namespace ranklab
