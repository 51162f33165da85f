#include "core/nn/row_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

// One body, compiled for the baseline and for AVX2 and chosen at load time; contraction is off (RanklabCompiler.cmake),
// so both give the same bits. Sanitizers run before the resolver's shadow memory exists, hence the exception.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define RANKLAB_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define RANKLAB_CLONES
#endif
#define RANKLAB_INLINE inline __attribute__((always_inline))

namespace ranklab::kernels {
namespace {

constexpr int64_t kLanes = 8;
// Rows whose weight gradient is summed before it joins the total: bounds the rounding of a long sum.
constexpr int64_t kGradBlockRows = 32;

template <typename T>
RANKLAB_INLINE T dot(const T* a, const T* b, int64_t n) {
  typedef T Vector __attribute__((vector_size(kLanes * sizeof(T))));
  Vector sum = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Vector va, vb;
    std::memcpy(&va, a + i, sizeof va);
    std::memcpy(&vb, b + i, sizeof vb);
    sum += va * vb;
  }
  T total = ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
  for (; i < n; ++i) total += a[i] * b[i];
  return total;
}

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
RANKLAB_INLINE void rms_norm_backward_body(RowShape shape, const T* __restrict grad_out, const T* __restrict grad_sum,
                                           const T* __restrict sum, const T* __restrict weight,
                                           const T* __restrict inv_rms, T* __restrict grad_in,
                                           T* __restrict grad_weight) {
  const int64_t cols = shape.cols;
  std::vector<T> scratch(static_cast<size_t>(2 * cols));
  T* weighted = scratch.data();      // grad_out * weight of one row
  T* block = scratch.data() + cols;  // grad_weight of one block of rows
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

// exp for sigmoid: range reduction by ln 2 in two parts and the degree-5 minimax polynomial of Cephes' expf, about one
// unit in the last place; written so that the compiler vectorizes it.
RANKLAB_INLINE float exp_of(float x) {
  x = std::min(std::max(x, -87.0f), 88.0f);
  const float rounder = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer in the low bits
  const float shifted = x * 1.44269504088896341f + rounder;
  const float n = shifted - rounder;
  const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  int32_t bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  const int32_t power = static_cast<int32_t>((static_cast<uint32_t>(bits) + 127u) << 23);
  float scale;
  std::memcpy(&scale, &power, sizeof scale);
  return p * scale;
}
RANKLAB_INLINE double exp_of(double x) { return std::exp(x); }

template <typename T>
RANKLAB_INLINE void swiglu_forward_body(RowShape shape, const T* __restrict gate_up, T* __restrict out) {
  for (int64_t row = 0; row < shape.rows; ++row) {
    const T* gate = gate_up + 2 * row * shape.cols;
    const T* up = gate + shape.cols;
    T* y = out + row * shape.cols;
    for (int64_t i = 0; i < shape.cols; ++i) y[i] = gate[i] / (T{1} + exp_of(-gate[i])) * up[i];
  }
}

template <typename T>
RANKLAB_INLINE void swiglu_backward_body(RowShape shape, const T* __restrict grad_out, const T* __restrict gate_up,
                                         T* __restrict grad_gate_up) {
  for (int64_t row = 0; row < shape.rows; ++row) {
    const T* gate = gate_up + 2 * row * shape.cols;
    const T* up = gate + shape.cols;
    const T* g = grad_out + row * shape.cols;
    T* d_gate = grad_gate_up + 2 * row * shape.cols;
    T* d_up = d_gate + shape.cols;
    for (int64_t i = 0; i < shape.cols; ++i) {
      const T sigmoid = T{1} / (T{1} + exp_of(-gate[i]));
      d_gate[i] = g[i] * up[i] * sigmoid * (T{1} + gate[i] * (T{1} - sigmoid));
      d_up[i] = g[i] * gate[i] * sigmoid;
    }
  }
}

// sign +1 rotates by the position's angle, -1 back.
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
          rotate(row, cos + s * (d / 2), sin + s * (d / 2), T{1}, d, out);
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
        const T* in = (is_q ? q : is_k ? k : v) + b * at.batch + local * at.head + s * at.seq;
        if (cos != nullptr && (is_q || is_k)) {
          rotate(in, cos + s * (d / 2), sin + s * (d / 2), T{-1}, d, row);
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

#define RANKLAB_KERNELS(T)                                                                                             \
  RANKLAB_CLONES void rms_norm_forward(RmsNormArgs args, const T* x, const T* branch, const T* weight, T* sum, T* out, \
                                       T* inv_rms) {                                                                   \
    rms_norm_forward_body<T>(args, x, branch, weight, sum, out, inv_rms);                                              \
  }                                                                                                                    \
  RANKLAB_CLONES void rms_norm_backward(RowShape shape, const T* grad_out, const T* grad_sum, const T* sum,            \
                                        const T* weight, const T* inv_rms, T* grad_in, T* grad_weight) {               \
    rms_norm_backward_body<T>(shape, grad_out, grad_sum, sum, weight, inv_rms, grad_in, grad_weight);                  \
  }                                                                                                                    \
  RANKLAB_CLONES void swiglu_forward(RowShape shape, const T* gate_up, T* out) {                                       \
    swiglu_forward_body<T>(shape, gate_up, out);                                                                       \
  }                                                                                                                    \
  RANKLAB_CLONES void swiglu_backward(RowShape shape, const T* grad_out, const T* gate_up, T* grad_gate_up) {          \
    swiglu_backward_body<T>(shape, grad_out, gate_up, grad_gate_up);                                                   \
  }                                                                                                                    \
  RANKLAB_CLONES void split_qkv(QkvShape shape, const T* qkv, const T* cos, const T* sin, T* q, T* k, T* v) {          \
    split_qkv_body<T>(shape, qkv, cos, sin, q, k, v);                                                                  \
  }                                                                                                                    \
  RANKLAB_CLONES void merge_qkv(QkvShape shape, HeadStrides3 strides, const T* q, const T* k, const T* v,              \
                                const T* cos, const T* sin, T* qkv) {                                                  \
    merge_qkv_body<T>(shape, strides, q, k, v, cos, sin, qkv);                                                         \
  }                                                                                                                    \
  RANKLAB_CLONES double sum_of_squares(const T* x, int64_t count) { return sum_of_squares_body<T>(x, count); }

RANKLAB_KERNELS(float)
RANKLAB_KERNELS(double)

}  // namespace ranklab::kernels
