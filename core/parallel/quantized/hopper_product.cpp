#include "core/parallel/quantized/hopper_product.h"

#include <vector>

#include "core/precision/hopper_sum.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

constexpr int64_t kPromoted = 128;

void write_numbers(const HopperSide& side, const OperandPiece& p, const at::Tensor& piece) {
  const at::Tensor& values = side.operand.values;
  const float* begin = values.const_data_ptr<float>() + p.row * values.size(1) + p.col;
  without_scales({begin, p.rows, p.cols, values.size(1)}, p.groups,
                 std::span(side.operand.scales).subspan(p.first_group, p.group_count), side.format,
                 piece.mutable_data_ptr<float>());
}

// The operand divided by its scales, so that it consists of numbers of its format: [rows, K].
at::Tensor numbers_of(const HopperSide& side) {
  const at::Tensor& values = side.operand.values;
  at::Tensor numbers = at::empty_like(values);
  for (const OperandPiece& p : side.operand.pieces) {
    const at::Tensor piece = at::empty({p.rows, p.cols}, values.options());
    if (!piece.is_meta()) write_numbers(side, p, piece);
    numbers.narrow(0, p.row, p.rows).narrow(1, p.col, p.cols).copy_(piece);
  }
  return side.operand.k_first() ? numbers.t().contiguous() : numbers;
}

BlockScale scale_at(const RoundedOperand& operand, int64_t row, int64_t col) {
  for (const OperandPiece& p : operand.pieces) {
    if (row < p.row || row >= p.row + p.rows || col < p.col || col >= p.col + p.cols) continue;
    const int64_t group = (row - p.row) / p.groups.height * p.groups.grid_cols(p.cols) + (col - p.col) / p.groups.width;
    return operand.scales[p.first_group + static_cast<size_t>(group)];
  }
  return {};
}

// One scale per row and 128 columns of K, the finest granularity at which a scale may change within a sum.
std::vector<BlockScale> scales_of(const HopperSide& side, int64_t rows, int64_t k) {
  std::vector<BlockScale> scales;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t begin = 0; begin < k; begin += kPromoted)
      scales.push_back(side.operand.k_first() ? scale_at(side.operand, begin, row)
                                              : scale_at(side.operand, row, begin));
  }
  return scales;
}

}  // namespace

at::Tensor hopper_product(const HopperSide& a, const HopperSide& b, bool promote) {
  const at::Tensor left = numbers_of(a), right = numbers_of(b);
  const int64_t m = left.size(0), n = right.size(0), k = left.size(1);
  if (left.is_meta()) return at::empty({m, n}, left.options());
  const std::vector<BlockScale> left_scales = scales_of(a, m, k), right_scales = scales_of(b, n, k);
  at::Tensor out = at::empty({m, n}, left.options());
  const GroupShape groups{1, kPromoted};
  hopper_gemm({{left.const_data_ptr<float>(), m, k, k}, groups, left_scales},
              {{right.const_data_ptr<float>(), n, k, k}, groups, right_scales}, promote, out.mutable_data_ptr<float>());
  return out;
}

}  // namespace ranklab
