#include "core/nn/kernels/row_kernels_16bit.h"

#include <algorithm>
#include <vector>

#include "core/base/vector_clones.h"
#include "core/nn/kernels/kernel_blocks.h"

namespace ranklab::kernels {
namespace {

// sign +1 rotates by the position's angle, and -1 rotates back.
template <typename T>
void rotate(const T* in, const float* cos, const float* sin, float sign, int64_t head_dim, T* out) {
  const int64_t half = head_dim / 2;
  for (int64_t i = 0; i < half; ++i) {
    const float s = sign * sin[i], a = widen(in[i]), b = widen(in[half + i]);
    narrow(a * cos[i] - b * s, out[i]);
    narrow(a * s + b * cos[i], out[half + i]);
  }
}

template <typename T>
void rotate_or_copy(const T* in, const float* cos, const float* sin, int64_t angle, float sign, int64_t head_dim,
                    T* out) {
  if (cos == nullptr) {
    std::copy(in, in + head_dim, out);
    return;
  }
  rotate(in, cos + angle, sin + angle, sign, head_dim, out);
}

template <typename T>
void rms_norm_forward_rows(RmsNormArgs args, const T* x, const T* branch, const T* weight, T* sum, T* out,
                           float* inv_rms) {
  const int64_t cols = args.shape.cols;
  const std::vector<float> wide_weight = widened(weight, cols, args.weight_offset);
  Scratch in(cols), normed(cols);
  for_blocks(args.shape.rows, [&](int64_t row, int64_t rows) {
    const int64_t first = row * cols, count = rows * cols;
    if (branch != nullptr) {
      for (int64_t i = first; i < first + count; ++i) narrow(widen(x[i]) + widen(branch[i]), sum[i]);
    }
    const float* input = in.filled((branch != nullptr ? sum : x) + first, count);
    rms_norm_forward({{rows, cols}, args.epsilon}, input, nullptr, wide_weight.data(), nullptr, normed.data(),
                     inv_rms + row);
    narrow_all(normed.data(), out + first, count);
  });
}

template <typename T>
void rms_norm_recompute_rows(RmsNormArgs args, const T* sum, const T* weight, const float* inv_rms, T* out) {
  const RowShape shape = args.shape;
  const std::vector<float> wide_weight = widened(weight, shape.cols, args.weight_offset);
  Scratch in(shape.cols), normed(shape.cols);
  for_blocks(shape.rows, [&](int64_t row, int64_t rows) {
    const int64_t first = row * shape.cols, count = rows * shape.cols;
    rms_norm_recompute({{rows, shape.cols}}, in.filled(sum + first, count), wide_weight.data(), inv_rms + row,
                       normed.data());
    narrow_all(normed.data(), out + first, count);
  });
}

template <typename T>
void rms_norm_backward_rows(RmsNormArgs args, const T* grad_out, const T* grad_sum, const T* sum, const T* weight,
                            const float* inv_rms, T* grad_in, T* grad_weight) {
  const int64_t cols = args.shape.cols;
  const std::vector<float> wide_weight = widened(weight, cols, args.weight_offset);
  std::vector<float> total(static_cast<size_t>(cols)), part(static_cast<size_t>(cols));
  Scratch g(cols), r(cols), x(cols), d(cols);
  for_blocks(args.shape.rows, [&](int64_t row, int64_t rows) {
    const int64_t first = row * cols, count = rows * cols;
    const float* residual = grad_sum != nullptr ? r.filled(grad_sum + first, count) : nullptr;
    rms_norm_backward({{rows, cols}}, g.filled(grad_out + first, count), residual, x.filled(sum + first, count),
                      wide_weight.data(), inv_rms + row, d.data(), part.data());
    narrow_all(d.data(), grad_in + first, count);
    for (size_t i = 0; i < total.size(); ++i) total[i] += part[i];
  });
  narrow_all(total.data(), grad_weight, cols);
}

template <typename T>
void swiglu_forward_rows(RowShape shape, const T* gate_up, T* out) {
  Scratch in(2 * shape.cols), y(shape.cols);
  for_blocks(shape.rows, [&](int64_t row, int64_t rows) {
    swiglu_forward({rows, shape.cols}, in.filled(gate_up + 2 * row * shape.cols, 2 * rows * shape.cols), y.data());
    narrow_all(y.data(), out + row * shape.cols, rows * shape.cols);
  });
}

template <typename T>
void swiglu_backward_rows(RowShape shape, const T* grad_out, const T* gate_up, T* grad_gate_up, T* out) {
  Scratch g(shape.cols), in(2 * shape.cols), d(2 * shape.cols);
  for_blocks(shape.rows, [&](int64_t row, int64_t rows) {
    const int64_t first = row * shape.cols, count = rows * shape.cols;
    swiglu_backward({rows, shape.cols}, g.filled(grad_out + first, count), in.filled(gate_up + 2 * first, 2 * count),
                    d.data(), out != nullptr ? g.data() : nullptr);
    narrow_all(d.data(), grad_gate_up + 2 * first, 2 * count);
    if (out != nullptr) narrow_all(g.data(), out + first, count);
  });
}

template <typename T>
void split_qkv_rows(QkvShape n, const T* qkv, const float* cos, const float* sin, T* q, T* k, T* v) {
  const int64_t d = n.head_dim;
  for (int64_t b = 0; b < n.batch; ++b) {
    for (int64_t s = 0; s < n.seq; ++s) {
      const T* row = qkv + (s * n.batch + b) * (n.heads + 2 * n.groups) * d;
      const int64_t angle = n.angles_of(b, s);
      for (int64_t h = 0; h < n.heads; ++h, row += d)
        rotate_or_copy(row, cos, sin, angle, 1, d, q + ((b * n.heads + h) * n.seq + s) * d);
      for (int64_t h = 0; h < n.groups; ++h, row += d)
        rotate_or_copy(row, cos, sin, angle, 1, d, k + ((b * n.groups + h) * n.seq + s) * d);
      for (int64_t h = 0; h < n.groups; ++h, row += d)
        rotate_or_copy(row, nullptr, nullptr, 0, 1, d, v + ((b * n.groups + h) * n.seq + s) * d);
    }
  }
}

template <typename T>
void merge_qkv_rows(QkvShape n, HeadStrides3 strides, const T* q, const T* k, const T* v, const float* cos,
                    const float* sin, T* qkv) {
  const int64_t d = n.head_dim;
  for (int64_t s = 0; s < n.seq; ++s) {
    for (int64_t b = 0; b < n.batch; ++b) {
      T* row = qkv + (s * n.batch + b) * (n.heads + 2 * n.groups) * d;
      const int64_t angle = n.angles_of(b, s);
      for (int64_t h = 0; h < n.heads; ++h, row += d)
        rotate_or_copy(q + strides.q.of(b, h, s), cos, sin, angle, -1, d, row);
      for (int64_t h = 0; h < n.groups; ++h, row += d)
        rotate_or_copy(k + strides.k.of(b, h, s), cos, sin, angle, -1, d, row);
      for (int64_t h = 0; h < n.groups; ++h, row += d)
        rotate_or_copy(v + strides.v.of(b, h, s), nullptr, nullptr, 0, -1, d, row);
    }
  }
}

template <typename T>
double sum_of_squares_rows(const T* x, int64_t count) {
  Scratch wide(32);
  constexpr int64_t kPart = kGradBlockRows * 32;
  double total = 0;
  for (int64_t i = 0; i < count; i += kPart) {
    const int64_t part = std::min(kPart, count - i);
    total += sum_of_squares(wide.filled(x + i, part), part);
  }
  return total;
}

}  // namespace

#define RANKLAB_16BIT_KERNELS(T)                                                                                \
  void rms_norm_forward(RmsNormArgs args, const T* x, const T* branch, const T* weight, T* sum, T* out,         \
                        float* inv_rms) {                                                                       \
    rms_norm_forward_rows(args, x, branch, weight, sum, out, inv_rms);                                          \
  }                                                                                                             \
  void rms_norm_recompute(RmsNormArgs args, const T* sum, const T* weight, const float* inv_rms, T* out) {      \
    rms_norm_recompute_rows(args, sum, weight, inv_rms, out);                                                   \
  }                                                                                                             \
  void rms_norm_backward(RmsNormArgs args, const T* grad_out, const T* grad_sum, const T* sum, const T* weight, \
                         const float* inv_rms, T* grad_in, T* grad_weight) {                                    \
    rms_norm_backward_rows(args, grad_out, grad_sum, sum, weight, inv_rms, grad_in, grad_weight);               \
  }                                                                                                             \
  void swiglu_forward(RowShape shape, const T* gate_up, T* out) { swiglu_forward_rows(shape, gate_up, out); }   \
  void swiglu_backward(RowShape shape, const T* grad_out, const T* gate_up, T* grad_gate_up, T* out) {          \
    swiglu_backward_rows(shape, grad_out, gate_up, grad_gate_up, out);                                          \
  }                                                                                                             \
  void split_qkv(QkvShape shape, const T* qkv, const float* cos, const float* sin, T* q, T* k, T* v) {          \
    split_qkv_rows(shape, qkv, cos, sin, q, k, v);                                                              \
  }                                                                                                             \
  void merge_qkv(QkvShape shape, HeadStrides3 strides, const T* q, const T* k, const T* v, const float* cos,    \
                 const float* sin, T* qkv) {                                                                    \
    merge_qkv_rows(shape, strides, q, k, v, cos, sin, qkv);                                                     \
  }                                                                                                             \
  double sum_of_squares(const T* x, int64_t count) { return sum_of_squares_rows(x, count); }                    \
  RANKLAB_CLONES void add_widened(const T* x, float* sum, int64_t count) {                                      \
    for (int64_t i = 0; i < count; ++i) sum[i] += widen(x[i]);                                                  \
  }

RANKLAB_16BIT_KERNELS(Bf16)
RANKLAB_16BIT_KERNELS(Fp16)

}  // namespace ranklab::kernels
