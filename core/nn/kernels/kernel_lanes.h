// Building blocks of the row kernels: sums in a fixed number of lanes, in functions that are also compiled for AVX2
// (core/base/vector_clones.h). Internal to core/nn; torch-free. Thread rule: pure functions.
#pragma once
#include <cstdint>
#include <cstring>

#include "core/base/vector_clones.h"

// Goes after the parameters of a lambda in a kernel: a lambda that is not inlined would be compiled only for the
// baseline.
#define RANKLAB_INLINE_LAMBDA __attribute__((always_inline))

namespace ranklab::kernels {

constexpr int64_t kLanes = 8;
// Rows whose weight gradient is summed separately before it is added to the total, which bounds the rounding error of a
// long sum.
constexpr int64_t kGradBlockRows = 32;

template <typename T>
struct LanesOf {
  typedef T Vector __attribute__((vector_size(kLanes * sizeof(T))));
};

template <typename T>
RANKLAB_INLINE T dot(const T* a, const T* b, int64_t n) {
  typedef typename LanesOf<T>::Vector Vector;
  Vector sum = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Vector va, vb;
    std::memcpy(&va, a + i, sizeof va);
    std::memcpy(&vb, b + i, sizeof vb);
    sum += va * vb;
  }
  T total = ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
  for (; i < n; ++i) total += a[i] * b[i];
  return total;
}

}  // namespace ranklab::kernels
