#include "core/nn/kernels/row_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/nn/kernels/kernel_lanes.h"

namespace ranklab::kernels {
namespace {

// The weight with the offset added; without an offset, the weight itself and no copy.
template <typename T>
class OffsetWeight {
 public:
  OffsetWeight(const T* weight, int64_t cols, double offset) : weight_(weight) {
    if (offset == 0) return;
    moved_.assign(weight, weight + cols);
    for (T& value : moved_) value += static_cast<T>(offset);
    weight_ = moved_.data();
  }
  const T* data() const { return weight_; }

 private:
  std::vector<T> moved_;
  const T* weight_;
};

template <typename T>
RANKLAB_INLINE void rms_norm_forward_body(RmsNormArgs args, const T* __restrict x, const T* __restrict branch,
                                          const T* __restrict weight, T* __restrict sum, T* __restrict out,
                                          T* __restrict inv_rms) {
  const int64_t cols = args.shape.cols;
  for (int64_t row = 0; row < args.shape.rows; ++row) {
    const T* input = x + row * cols;
    if (branch != nullptr) {
      T* s = sum + row * cols;
      const T* o = branch + row * cols;
      for (int64_t i = 0; i < cols; ++i) s[i] = input[i] + o[i];
      input = s;
    }
    const T mean_square = dot(input, input, cols) / static_cast<T>(cols);
    const T inv = T{1} / std::sqrt(mean_square + static_cast<T>(args.epsilon));
    inv_rms[row] = inv;
    T* y = out + row * cols;
    for (int64_t i = 0; i < cols; ++i) y[i] = input[i] * inv * weight[i];
  }
}

template <typename T>
RANKLAB_INLINE void rms_norm_recompute_body(RowShape shape, const T* __restrict sum, const T* __restrict weight,
                                            const T* __restrict inv_rms, T* __restrict out) {
  for (int64_t row = 0; row < shape.rows; ++row) {
    const T* x = sum + row * shape.cols;
    T* y = out + row * shape.cols;
    for (int64_t i = 0; i < shape.cols; ++i) y[i] = x[i] * inv_rms[row] * weight[i];
  }
}

template <typename T>
RANKLAB_INLINE void rms_norm_backward_body(RowShape shape, const T* __restrict grad_out, const T* __restrict grad_sum,
                                           const T* __restrict sum, const T* __restrict weight,
                                           const T* __restrict inv_rms, T* __restrict grad_in,
                                           T* __restrict grad_weight) {
  const int64_t cols = shape.cols;
  std::vector<T> scratch(static_cast<size_t>(2 * cols));
  T* weighted = scratch.data();      // grad_out * weight for one row
  T* block = scratch.data() + cols;  // grad_weight for one block of rows
  std::fill(grad_weight, grad_weight + cols, T{0});
  for (int64_t row = 0; row < shape.rows; ++row) {
    if (row % kGradBlockRows == 0) std::fill(block, block + cols, T{0});
    const T* g = grad_out + row * cols;
    const T* x = sum + row * cols;
    T* d = grad_in + row * cols;
    const T inv = inv_rms[row];
    for (int64_t i = 0; i < cols; ++i) {
      weighted[i] = g[i] * weight[i];
      block[i] += g[i] * x[i] * inv;
    }
    const T projection = dot(weighted, x, cols) * inv * inv / static_cast<T>(cols);
    if (grad_sum != nullptr) {
      const T* r = grad_sum + row * cols;
      for (int64_t i = 0; i < cols; ++i) d[i] = r[i] + inv * (weighted[i] - x[i] * projection);
    } else {
      for (int64_t i = 0; i < cols; ++i) d[i] = inv * (weighted[i] - x[i] * projection);
    }
    if ((row + 1) % kGradBlockRows == 0 || row + 1 == shape.rows) {
      for (int64_t i = 0; i < cols; ++i) grad_weight[i] += block[i];
    }
  }
}

// 1 / (1 + exp(-x)) of kLanes numbers. exp uses range reduction with ln 2 in two parts and the degree-5 minimax
// polynomial of Cephes' expf, with an error of about one unit in the last place. Written on vectors because compilers
// do not vectorize the bit manipulation.
RANKLAB_INLINE void sigmoid_lanes(const float* x, float* out) {
  typedef LanesOf<float>::Vector Vector;
  typedef int32_t Bits __attribute__((vector_size(kLanes * sizeof(int32_t))));
  Vector v;
  std::memcpy(&v, x, sizeof v);
  v = -v;
  v = v > 87.0f ? Vector{} + 87.0f : v;
  v = v < -87.0f ? Vector{} - 87.0f : v;
  const Vector shifted = v * 1.44269504088896341f + 12582912.0f;  // 1.5 * 2^23 rounds to an integer in the low bits
  const Vector n = shifted - 12582912.0f;
  const Vector r = (v - n * 0.693359375f) - n * -2.12194440e-4f;
  Vector p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const Bits power = ((Bits)shifted + 127) << 23;
  const Vector sigmoid = 1.0f / (1.0f + p * (Vector)power);
  std::memcpy(out, &sigmoid, sizeof sigmoid);
}
RANKLAB_INLINE void sigmoid_lanes(const double* x, double* out) {
  for (int64_t lane = 0; lane < kLanes; ++lane) out[lane] = 1.0 / (1.0 + std::exp(-x[lane]));
}

// Calls block(offset, count) for kLanes elements at a time, and once for the remainder.
template <typename F>
RANKLAB_INLINE void for_lanes(int64_t cols, const F& block) {
  int64_t i = 0;
  for (; i + kLanes <= cols; i += kLanes) block(i, kLanes);
  if (i < cols) block(i, cols - i);
}

template <typename T>
RANKLAB_INLINE void swiglu_forward_body(RowShape shape, const T* gate_up, T* out) {
  typedef typename LanesOf<T>::Vector Vector;
  for (int64_t row = 0; row < shape.rows; ++row) {
    const T* gate_row = gate_up + 2 * row * shape.cols;
    T* out_row = out + row * shape.cols;
    for_lanes(shape.cols, [&](int64_t i, int64_t count) RANKLAB_INLINE_LAMBDA {
      const size_t bytes = static_cast<size_t>(count) * sizeof(T);
      Vector gate = {}, up = {}, sigmoid;
      std::memcpy(&gate, gate_row + i, bytes);
      std::memcpy(&up, gate_row + shape.cols + i, bytes);
      sigmoid_lanes(reinterpret_cast<const T*>(&gate), reinterpret_cast<T*>(&sigmoid));
      const Vector y = gate * sigmoid * up;
      std::memcpy(out_row + i, &y, bytes);
    });
  }
}

template <typename T>
RANKLAB_INLINE void swiglu_backward_body(RowShape shape, const T* grad_out, const T* gate_up, T* grad_gate_up, T* out) {
  typedef typename LanesOf<T>::Vector Vector;
  for (int64_t row = 0; row < shape.rows; ++row) {
    const T* gate_row = gate_up + 2 * row * shape.cols;
    const T* grad_row = grad_out + row * shape.cols;
    T* d_row = grad_gate_up + 2 * row * shape.cols;
    T* out_row = out != nullptr ? out + row * shape.cols : nullptr;
    for_lanes(shape.cols, [&](int64_t i, int64_t count) RANKLAB_INLINE_LAMBDA {
      const size_t bytes = static_cast<size_t>(count) * sizeof(T);
      Vector gate = {}, up = {}, grad = {}, sigmoid;
      std::memcpy(&gate, gate_row + i, bytes);
      std::memcpy(&up, gate_row + shape.cols + i, bytes);
      std::memcpy(&grad, grad_row + i, bytes);
      sigmoid_lanes(reinterpret_cast<const T*>(&gate), reinterpret_cast<T*>(&sigmoid));
      const Vector d_gate = grad * up * sigmoid * (1 + gate * (1 - sigmoid));
      const Vector d_up = grad * gate * sigmoid;
      std::memcpy(d_row + i, &d_gate, bytes);
      std::memcpy(d_row + shape.cols + i, &d_up, bytes);
      if (out_row == nullptr) return;
      const Vector y = gate * sigmoid * up;
      std::memcpy(out_row + i, &y, bytes);
    });
  }
}

// sign +1 rotates by the position's angle, and -1 rotates back.
template <typename T>
RANKLAB_INLINE void rotate(const T* __restrict in, const T* __restrict cos, const T* __restrict sin, T sign,
                           int64_t head_dim, T* __restrict out) {
  const int64_t half = head_dim / 2;
  for (int64_t i = 0; i < half; ++i) {
    const T s = sign * sin[i];
    const T a = in[i], b = in[half + i];
    out[i] = a * cos[i] - b * s;
    out[half + i] = a * s + b * cos[i];
  }
}

template <typename T>
RANKLAB_INLINE void split_qkv_body(QkvShape n, const T* qkv, const T* cos, const T* sin, T* q, T* k, T* v) {
  const int64_t d = n.head_dim;
  for (int64_t b = 0; b < n.batch; ++b) {
    for (int64_t s = 0; s < n.seq; ++s) {
      const T* row = qkv + (s * n.batch + b) * (n.heads + 2 * n.groups) * d;
      for (int64_t h = 0; h < n.heads + 2 * n.groups; ++h, row += d) {
        const bool is_q = h < n.heads, is_k = !is_q && h < n.heads + n.groups;
        T* out = is_q   ? q + ((b * n.heads + h) * n.seq + s) * d
                 : is_k ? k + ((b * n.groups + h - n.heads) * n.seq + s) * d
                        : v + ((b * n.groups + h - n.heads - n.groups) * n.seq + s) * d;
        if (cos != nullptr && (is_q || is_k)) {
          const int64_t angle = n.angles_of(b, s);
          rotate(row, cos + angle, sin + angle, T{1}, d, out);
        } else {
          std::memcpy(out, row, static_cast<size_t>(d) * sizeof(T));
        }
      }
    }
  }
}

template <typename T>
RANKLAB_INLINE void merge_qkv_body(QkvShape n, HeadStrides3 strides, const T* q, const T* k, const T* v, const T* cos,
                                   const T* sin, T* qkv) {
  const int64_t d = n.head_dim;
  for (int64_t s = 0; s < n.seq; ++s) {
    for (int64_t b = 0; b < n.batch; ++b) {
      T* row = qkv + (s * n.batch + b) * (n.heads + 2 * n.groups) * d;
      for (int64_t h = 0; h < n.heads + 2 * n.groups; ++h, row += d) {
        const bool is_q = h < n.heads, is_k = !is_q && h < n.heads + n.groups;
        const HeadStrides& at = is_q ? strides.q : is_k ? strides.k : strides.v;
        const int64_t local = is_q ? h : is_k ? h - n.heads : h - n.heads - n.groups;
        const T* in = (is_q ? q : is_k ? k : v) + at.of(b, local, s);
        if (cos != nullptr && (is_q || is_k)) {
          const int64_t angle = n.angles_of(b, s);
          rotate(in, cos + angle, sin + angle, T{-1}, d, row);
        } else {
          std::memcpy(row, in, static_cast<size_t>(d) * sizeof(T));
        }
      }
    }
  }
}

template <typename T>
RANKLAB_INLINE double sum_of_squares_body(const T* x, int64_t count) {
  double lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const double value = static_cast<double>(x[i + lane]);
      lanes[lane] += value * value;
    }
  }
  double total = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
  for (; i < count; ++i) total += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return total;
}

}  // namespace

#define RANKLAB_ROW_KERNELS(T)                                                                                         \
  RANKLAB_CLONES void rms_norm_forward(RmsNormArgs args, const T* x, const T* branch, const T* weight, T* sum, T* out, \
                                       T* inv_rms) {                                                                   \
    const OffsetWeight<T> moved(weight, args.shape.cols, args.weight_offset);                                          \
    rms_norm_forward_body<T>(args, x, branch, moved.data(), sum, out, inv_rms);                                        \
  }                                                                                                                    \
  RANKLAB_CLONES void rms_norm_recompute(RmsNormArgs args, const T* sum, const T* weight, const T* inv_rms, T* out) {  \
    const OffsetWeight<T> moved(weight, args.shape.cols, args.weight_offset);                                          \
    rms_norm_recompute_body<T>(args.shape, sum, moved.data(), inv_rms, out);                                           \
  }                                                                                                                    \
  RANKLAB_CLONES void rms_norm_backward(RmsNormArgs args, const T* grad_out, const T* grad_sum, const T* sum,          \
                                        const T* weight, const T* inv_rms, T* grad_in, T* grad_weight) {               \
    const OffsetWeight<T> moved(weight, args.shape.cols, args.weight_offset);                                          \
    rms_norm_backward_body<T>(args.shape, grad_out, grad_sum, sum, moved.data(), inv_rms, grad_in, grad_weight);       \
  }                                                                                                                    \
  RANKLAB_CLONES void swiglu_forward(RowShape shape, const T* gate_up, T* out) {                                       \
    swiglu_forward_body<T>(shape, gate_up, out);                                                                       \
  }                                                                                                                    \
  RANKLAB_CLONES void swiglu_backward(RowShape shape, const T* grad_out, const T* gate_up, T* grad_gate_up, T* out) {  \
    swiglu_backward_body<T>(shape, grad_out, gate_up, grad_gate_up, out);                                              \
  }                                                                                                                    \
  RANKLAB_CLONES void split_qkv(QkvShape shape, const T* qkv, const T* cos, const T* sin, T* q, T* k, T* v) {          \
    split_qkv_body<T>(shape, qkv, cos, sin, q, k, v);                                                                  \
  }                                                                                                                    \
  RANKLAB_CLONES void merge_qkv(QkvShape shape, HeadStrides3 strides, const T* q, const T* k, const T* v,              \
                                const T* cos, const T* sin, T* qkv) {                                                  \
    merge_qkv_body<T>(shape, strides, q, k, v, cos, sin, qkv);                                                         \
  }                                                                                                                    \
  RANKLAB_CLONES double sum_of_squares(const T* x, int64_t count) { return sum_of_squares_body<T>(x, count); }

RANKLAB_ROW_KERNELS(float)
RANKLAB_ROW_KERNELS(double)

}  // namespace ranklab::kernels
