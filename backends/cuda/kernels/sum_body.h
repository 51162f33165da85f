// The per-thread code of summing 16-bit gradients in fp32. It replaces copy_() and add_(), whose kernels process
// operands of two types only one number at a time. Compiles for a GPU and for a test on a CPU. Thread rule: pure except
// for what it writes.
#pragma once
#include "backends/cuda/kernels/numbers.h"

namespace ranklab::rows {

template <typename T>
struct SumTask {
  const T* x = nullptr;
  float* sum = nullptr;
  int64_t count = 0;
  bool first = false;  // sum = x, whatever `sum` contained
};

// sum += x for kItems elements, starting at `at`. REQUIRES: kItems is 1; or it is kPack<float>, and `at` is a multiple
// of it: then neighbouring threads write whole sectors.
template <int kItems, typename T>
RANKLAB_BOTH void accumulate(const SumTask<T>& task, int64_t at) {
  float x[kItems], sum[kItems];
  load<kItems>(task.x + at, x);
  if (!task.first) {
    load<kItems>(task.sum + at, sum);
    RANKLAB_UNROLL
    for (int i = 0; i < kItems; ++i) x[i] = sum[i] + x[i];
  }
  store<kItems>(x, task.sum + at);
}

}  // namespace ranklab::rows
