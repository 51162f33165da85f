#include "core/plan/product_walk.h"

#include "core/precision/scaled_matrix.h"

namespace ranklab {
namespace {

constexpr int64_t kMagnitudeBytes = 4;  // of a largest magnitude
constexpr double kBitsPerByte = 8;

bool of_whole_tensor(const TensorPrecision& p) {
  return p.quantized() && p.scale != ScaleRule::kDelayedFp32 &&
         (p.granularity == Granularity::kTensor || p.scale == ScaleRule::kE4M3);
}

}  // namespace

double ProductWalk::row_bytes(int64_t rows, int64_t cols) const {
  return static_cast<double>(rows * cols * s_.element_bytes());
}

void ProductWalk::plain(int64_t m, int64_t k, int64_t n) {
  v_.compute(2.0 * static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n),
             row_bytes(m, k) + row_bytes(k, n) + row_bytes(m, n), 1);
}

void ProductWalk::agree(int64_t numbers) { v_.wait(v_.post(Axis::kTp, Verb::kAllReduce, numbers * kMagnitudeBytes)); }

// core/parallel/operand_rounding.cpp
void ProductWalk::round(const Operand& o) {
  if (!o.precision.quantized()) return;
  const double read = row_bytes(o.rows, o.cols);
  const bool cut = s_.dims.tp > 1;
  if (of_whole_tensor(o.precision)) {
    v_.compute(0, read, 1);
    if (cut && o.rows_cut) agree(1);
    if (cut && o.cols_cut) agree(1);
  }
  const bool along_cut = o.along_columns ? o.cols_cut : o.rows_cut;
  if (cut && along_cut && o.precision.granularity == Granularity::kRow) agree(o.along_columns ? o.rows : o.cols);
  v_.compute(0, read + static_cast<double>(o.rows * o.cols * o.precision.format->bits()) / kBitsPerByte, 1);
}

void ProductWalk::multiply(int64_t m, int64_t k, int64_t n, const TensorPrecision& left, const TensorPrecision& right) {
  const auto bytes = [&](int64_t rows, int64_t cols, const TensorPrecision& p) {
    return p.quantized() ? static_cast<double>(rows * cols * p.format->bits()) / kBitsPerByte : row_bytes(rows, cols);
  };
  const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n);
  const double moved = bytes(m, k, left) + bytes(k, n, right) + row_bytes(m, n);
  if (left.quantized() && right.quantized()) return v_.compute_fp8(flops, moved);
  v_.compute(flops, moved, 1);
}

void ProductWalk::forward(const LayerProducts& l) {
  if (!low(l)) return plain(l.tokens, l.in, l.out);
  const LinearPrecision& p = s_.products;
  const bool own_tokens = l.split == ProductSplit::kReplicated && s_.sharded_sequence();
  round({p.activation, l.tokens, l.in, true, own_tokens, l.split == ProductSplit::kRow});
  round({p.weight, l.out, l.in, true, l.split == ProductSplit::kColumn, l.split == ProductSplit::kRow});
  multiply(l.tokens, l.in, l.out, p.activation, p.weight);
}

void ProductWalk::input_grad(const LayerProducts& l) {
  if (!low(l)) return plain(l.tokens, l.out, l.in);
  const LinearPrecision& p = s_.products;
  const bool own_tokens = l.split == ProductSplit::kReplicated && s_.sharded_sequence();
  round({p.gradient, l.tokens, l.out, true, own_tokens, l.split == ProductSplit::kColumn});
  round({p.weight, l.out, l.in, false, l.split == ProductSplit::kColumn, l.split == ProductSplit::kRow});
  multiply(l.tokens, l.out, l.in, p.gradient, p.weight);
}

void ProductWalk::weight_grad(const LayerProducts& l) {
  if (!low(l)) {
    plain(l.out, l.tokens, l.in);
    if (l.in < l.out) v_.compute(0, 2 * row_bytes(l.in, l.out), 1);  // computed as its transpose, then copied
    return;
  }
  const LinearPrecision& p = s_.products;
  const bool own_tokens = l.split == ProductSplit::kReplicated && s_.sharded_sequence();
  const Operand x{p.activation, l.tokens, l.in, false, own_tokens, l.split == ProductSplit::kRow};
  if (p.requantize_activation) round({p.activation, x.rows, x.cols, true, x.rows_cut, x.cols_cut});
  round({p.gradient, l.tokens, l.out, false, own_tokens, l.split == ProductSplit::kColumn});
  round(x);
  multiply(l.out, l.tokens, l.in, p.gradient, p.activation);
}

// core/parallel/expert/grouped_linear.cpp
void ProductWalk::experts(int64_t rows, int64_t in, int64_t out, int agreements) {
  const auto n = static_cast<double>(rows), i = static_cast<double>(in), o = static_cast<double>(out);
  const double operands = n * i + i * o * static_cast<double>(s_.local_experts());
  double bytes = static_cast<double>(s_.element_bytes()) * (operands + n * o);
  if (!s_.products.weight.quantized()) return v_.compute(2 * n * i * o, bytes, 1);
  for (int64_t all = s_.local_experts() * agreements; all > 0; --all)
    v_.wait(v_.post(Axis::kEtp, Verb::kAllReduce, kMagnitudeBytes));
  bytes += 2 * operands * s_.products.weight.format->bits() / kBitsPerByte;
  v_.compute_fp8(2 * n * i * o, bytes);
}

ProductWalk::Agreements ProductWalk::expert_agreements(ProductSplit split) const {
  const LinearPrecision& p = s_.products;
  if (s_.dims.etp == 1 || !p.quantized()) return {};
  const int x = of_whole_tensor(p.activation) ? 1 : 0, w = of_whole_tensor(p.weight) ? 1 : 0;
  const int dy = of_whole_tensor(p.gradient) ? 1 : 0;
  if (split == ProductSplit::kColumn) return {.forward = w, .input_grad = dy + w, .weight_grad = dy};
  return {.forward = x + w, .input_grad = w, .weight_grad = p.requantize_activation ? 2 * x : x};
}

void ProductWalk::round_tokens(int64_t tokens) {
  if (s_.dispatch.quantized()) round({s_.dispatch, tokens, s_.model.hidden_size, true, false, false});
}

int64_t ProductWalk::dispatched_row_bytes(int64_t width) const {
  if (!s_.dispatch.quantized()) return width * s_.element_bytes();
  const int64_t hidden = s_.model.hidden_size;
  return packed_layout(s_.dispatch, Along::kColumns, 1, hidden).row_bytes() + (width - hidden) * s_.element_bytes();
}

// core/parallel/quantizer_book.cpp
void ProductWalk::end_step(int64_t modules) {
  constexpr int64_t kRoles = 3;
  if (!scales_are_delayed(s_.products)) return;
  for (const Axis axis : {Axis::kTp, Axis::kDp}) {
    if (s_.dims.size(axis) > 1) v_.wait(v_.post(axis, Verb::kAllReduce, modules * kRoles * kMagnitudeBytes));
  }
}

}  // namespace ranklab
