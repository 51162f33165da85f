#include "core/comm/tree_reduce_tensors.h"

#include <bit>

#include "core/sim/aten.h"

namespace ranklab {
namespace {

at::Tensor combine(const at::Tensor& left, const at::Tensor& right, ReduceOp op) {
  if (op == ReduceOp::kMin) return at::minimum(left, right);
  if (op == ReduceOp::kMax) return at::maximum(left, right);
  return left + right;
}

// Reduces inputs [begin, end), which are split at the largest power of two below their number.
at::Tensor tree(const std::vector<at::Tensor>& inputs, size_t begin, size_t end, ReduceOp op, bool widen) {
  if (end - begin == 1) return widen ? inputs[begin].to(at::kFloat) : inputs[begin];
  const size_t split = begin + std::bit_floor(end - begin - 1);
  const at::Tensor left = tree(inputs, begin, split, op, widen);
  return combine(left, tree(inputs, split, end, op, widen), op);
}

}  // namespace

at::Tensor tree_reduce_tensors(const std::vector<at::Tensor>& inputs, ReduceOp op, bool in_fp32) {
  const at::ScalarType type = inputs.front().scalar_type();
  const bool narrow = type == at::kBFloat16 || type == at::kHalf;
  at::Tensor sum = tree(inputs, 0, inputs.size(), op, narrow && in_fp32);
  // Divides by a tensor, because for a scalar on the host GPU kernels multiply by its rounded reciprocal.
  if (op == ReduceOp::kAvg) sum = sum / at::full({1}, static_cast<double>(inputs.size()), sum.options());
  return sum.to(type);
}

}  // namespace ranklab
