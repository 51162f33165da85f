// A tensor of a record, put together from its ranks. Thread rule: pure.
#pragma once
#include <vector>

#include "core/parity/parity_record.h"

namespace ranklab {

struct WholeTensor {
  at::Tensor values;  // flat, fp64
  at::Tensor known;   // which elements some rank has
  std::vector<int64_t> shape;
  double rms = 0;      // root mean square, of what is finite
  bool finite = true;  // all of it
};

WholeTensor put_together(const std::vector<TensorPiece>& pieces);
double root_mean_square(const at::Tensor& values);

}  // namespace ranklab
