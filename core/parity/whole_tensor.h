// A tensor of a record, assembled from all ranks' pieces. Thread rule: pure.
#pragma once
#include <vector>

#include "core/parity/parity_record.h"

namespace ranklab {

struct WholeTensor {
  at::Tensor values;  // flat, fp64
  at::Tensor known;   // which elements at least one rank has
  std::vector<int64_t> shape;
  double rms = 0;      // root mean square of the finite elements
  bool finite = true;  // all elements are finite
};

WholeTensor put_together(const std::vector<TensorPiece>& pieces);
double root_mean_square(const at::Tensor& values);

}  // namespace ranklab
