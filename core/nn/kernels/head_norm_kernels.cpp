#include "core/nn/kernels/head_norm_kernels.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/nn/kernels/kernel_blocks.h"

namespace ranklab::kernels {
namespace {

template <typename T>
RANKLAB_INLINE void forward_body(HeadNormShape n, const T* qkv, const T* q_weight, const T* k_weight, T* out,
                                 T* inv_rms) {
  const int64_t d = n.head_dim, normed = n.normed();
  const T offset = static_cast<T>(n.weight_offset);
  for (int64_t token = 0; token < n.tokens; ++token, qkv += n.width(), out += n.width()) {
    for (int64_t h = 0; h < normed; ++h) {
      const T* x = qkv + h * d;
      const T* weight = h < n.heads ? q_weight : k_weight;
      T* y = out + h * d;
      const T inv = T{1} / std::sqrt(dot(x, x, d) / static_cast<T>(d) + static_cast<T>(n.epsilon));
      inv_rms[token * normed + h] = inv;
      for (int64_t i = 0; i < d; ++i) y[i] = x[i] * inv * (weight[i] + offset);
    }
    std::copy(qkv + normed * d, qkv + n.width(), out + normed * d);
  }
}

template <typename T>
RANKLAB_INLINE void backward_body(HeadNormShape n, const T* grad_out, const T* qkv, const T* q_weight,
                                  const T* k_weight, const T* inv_rms, T* grad_qkv, T* grad_q_weight,
                                  T* grad_k_weight) {
  const int64_t d = n.head_dim, normed = n.normed();
  const T offset = static_cast<T>(n.weight_offset);
  std::vector<T> scratch(static_cast<size_t>(3 * d));
  T* weighted = scratch.data();     // grad_out * weight for one head
  T* q_block = scratch.data() + d;  // the weights' gradients for one block of tokens
  T* k_block = scratch.data() + 2 * d;
  std::fill(grad_q_weight, grad_q_weight + d, T{0});
  std::fill(grad_k_weight, grad_k_weight + d, T{0});
  for (int64_t token = 0; token < n.tokens; ++token) {
    if (token % kGradBlockRows == 0) std::fill(q_block, q_block + 2 * d, T{0});
    for (int64_t h = 0; h < normed; ++h) {
      const int64_t at = token * n.width() + h * d;
      const T *g = grad_out + at, *x = qkv + at;
      const T* weight = h < n.heads ? q_weight : k_weight;
      T* block = h < n.heads ? q_block : k_block;
      T* dx = grad_qkv + at;
      const T inv = inv_rms[token * normed + h];
      for (int64_t i = 0; i < d; ++i) {
        weighted[i] = g[i] * (weight[i] + offset);
        block[i] += g[i] * x[i] * inv;
      }
      const T projection = dot(weighted, x, d) * inv * inv / static_cast<T>(d);
      for (int64_t i = 0; i < d; ++i) dx[i] = inv * (weighted[i] - x[i] * projection);
    }
    const int64_t values = token * n.width() + normed * d;
    std::copy(grad_out + values, grad_out + values + n.groups * d, grad_qkv + values);
    if ((token + 1) % kGradBlockRows != 0 && token + 1 != n.tokens) continue;
    for (int64_t i = 0; i < d; ++i) grad_q_weight[i] += q_block[i];
    for (int64_t i = 0; i < d; ++i) grad_k_weight[i] += k_block[i];
  }
}

// --- 16 bits ---
HeadNormShape of_tokens(HeadNormShape shape, int64_t tokens) {
  shape.tokens = tokens;
  return shape;
}

template <typename T>
void forward_16bit(HeadNormShape n, const T* qkv, const T* q_weight, const T* k_weight, T* out, float* inv_rms) {
  const std::vector<float> wq = widened(q_weight, n.head_dim), wk = widened(k_weight, n.head_dim);
  Scratch x(n.width()), y(n.width());
  for_blocks(n.tokens, [&](int64_t token, int64_t tokens) {
    const int64_t first = token * n.width(), count = tokens * n.width();
    head_norm_forward(of_tokens(n, tokens), x.filled(qkv + first, count), wq.data(), wk.data(), y.data(),
                      inv_rms + token * n.normed());
    narrow_all(y.data(), out + first, count);
  });
}

template <typename T>
void backward_16bit(HeadNormShape n, const T* grad_out, const T* qkv, const T* q_weight, const T* k_weight,
                    const float* inv_rms, T* grad_qkv, T* grad_q_weight, T* grad_k_weight) {
  const auto d = static_cast<size_t>(n.head_dim);
  const std::vector<float> wq = widened(q_weight, n.head_dim), wk = widened(k_weight, n.head_dim);
  std::vector<float> q_sum(d), k_sum(d), q_part(d), k_part(d);
  Scratch g(n.width()), x(n.width()), dx(n.width());
  for_blocks(n.tokens, [&](int64_t token, int64_t tokens) {
    const int64_t first = token * n.width(), count = tokens * n.width();
    head_norm_backward(of_tokens(n, tokens), g.filled(grad_out + first, count), x.filled(qkv + first, count), wq.data(),
                       wk.data(), inv_rms + token * n.normed(), dx.data(), q_part.data(), k_part.data());
    narrow_all(dx.data(), grad_qkv + first, count);
    for (size_t i = 0; i < d; ++i) q_sum[i] += q_part[i];
    for (size_t i = 0; i < d; ++i) k_sum[i] += k_part[i];
  });
  narrow_all(q_sum.data(), grad_q_weight, n.head_dim);
  narrow_all(k_sum.data(), grad_k_weight, n.head_dim);
}

}  // namespace

#define RANKLAB_HEAD_NORM_KERNELS(T, Wide, CLONES, FORWARD, BACKWARD)                                            \
  CLONES void head_norm_forward(HeadNormShape shape, const T* qkv, const T* q_weight, const T* k_weight, T* out, \
                                Wide* inv_rms) {                                                                 \
    FORWARD<T>(shape, qkv, q_weight, k_weight, out, inv_rms);                                                    \
  }                                                                                                              \
  CLONES void head_norm_backward(HeadNormShape shape, const T* grad_out, const T* qkv, const T* q_weight,        \
                                 const T* k_weight, const Wide* inv_rms, T* grad_qkv, T* grad_q_weight,          \
                                 T* grad_k_weight) {                                                             \
    BACKWARD<T>(shape, grad_out, qkv, q_weight, k_weight, inv_rms, grad_qkv, grad_q_weight, grad_k_weight);      \
  }

RANKLAB_HEAD_NORM_KERNELS(float, float, RANKLAB_CLONES, forward_body, backward_body)
RANKLAB_HEAD_NORM_KERNELS(double, double, RANKLAB_CLONES, forward_body, backward_body)
RANKLAB_HEAD_NORM_KERNELS(Bf16, float, , forward_16bit, backward_16bit)
RANKLAB_HEAD_NORM_KERNELS(Fp16, float, , forward_16bit, backward_16bit)

}  // namespace ranklab::kernels
