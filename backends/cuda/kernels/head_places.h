// Where the rows of attention heads are in memory. Compiles for a GPU and for a test on a CPU. Thread rule: plain data.
#pragma once
#include "backends/cuda/kernels/numbers.h"

namespace ranklab::rows {

// Element strides of a [batch, head, seq, head_dim] tensor whose last dim is dense.
struct HeadPlaces {
  int64_t batch = 0, head = 0, seq = 0;

  RANKLAB_BOTH int64_t of(int64_t b, int64_t h, int64_t s) const { return b * batch + h * head + s * seq; }
};

}  // namespace ranklab::rows
