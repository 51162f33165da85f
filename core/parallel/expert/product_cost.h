// The cost on a GPU of any of the three products of grouped rows: it reads or writes every expert's weight, and all
// rows on both sides. Thread rule: pure.
#pragma once
#include <ATen/core/Tensor.h>

#include <algorithm>

#include "core/sim/op_cost.h"
#include "core/sim/op_observer.h"

namespace ranklab {

struct ProductCost {
  double flops = 0;
  double operand_elements = 0;  // rows and weights
  double bytes = 0;
  KernelShape shape = {};
  CostScope scope(DType dtype) const { return {{"grouped_gemm", shape}, flops, bytes, dtype}; }
};

inline ProductCost grouped_product_cost(int64_t rows, int64_t in, int64_t out, size_t experts, size_t itemsize) {
  const auto n = static_cast<double>(rows), i = static_cast<double>(in), o = static_cast<double>(out);
  const double operands = n * i + i * o * static_cast<double>(experts);
  // assumes the same number of rows for each expert
  const double each = n / std::max<double>(static_cast<double>(experts), 1);
  KernelShape shape = KernelShape::product(each, o, i, static_cast<double>(experts));
  shape.launches = std::max(static_cast<int>(experts), 1);
  return {2 * n * i * o, operands, static_cast<double>(itemsize) * (operands + n * o), shape};
}

}  // namespace ranklab
