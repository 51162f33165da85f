// The ATen scalar type of a floating-point DType. Thread rule: pure.
#pragma once
#include <c10/core/ScalarType.h>

#include "core/base/dtype.h"

namespace ranklab {

inline c10::ScalarType scalar_type(DType dtype) {
  if (dtype == DType::kBFloat16) return c10::ScalarType::BFloat16;
  if (dtype == DType::kFloat16) return c10::ScalarType::Half;
  return dtype == DType::kFloat64 ? c10::ScalarType::Double : c10::ScalarType::Float;
}

}  // namespace ranklab
