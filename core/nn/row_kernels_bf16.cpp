#include "core/nn/row_kernels_bf16.h"

#include <algorithm>
#include <vector>

namespace ranklab::kernels {
namespace {

// Rows that go through the fp32 loops together: as many as their weight gradient's blocks (row_kernels.cpp).
constexpr int64_t kBlockRows = 32;

void widen_all(const Bf16* from, float* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = widen(from[i]);
}
void narrow_all(const float* from, Bf16* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = narrow(from[i]);
}

std::vector<float> widened(const Bf16* from, int64_t count) {
  std::vector<float> result(static_cast<size_t>(count));
  widen_all(from, result.data(), count);
  return result;
}

// Calls block(first row, rows) for kBlockRows at a time.
template <typename F>
void for_blocks(int64_t rows, const F& block) {
  for (int64_t row = 0; row < rows; row += kBlockRows) block(row, std::min(kBlockRows, rows - row));
}

class Scratch {
 public:
  explicit Scratch(int64_t cols) : rows_(static_cast<size_t>(kBlockRows * cols)) {}
  float* data() { return rows_.data(); }
  float* filled(const Bf16* from, int64_t count) {
    widen_all(from, data(), count);
    return data();
  }

 private:
  std::vector<float> rows_;
};

// sign +1 rotates by the position's angle, -1 back.
void rotate(const Bf16* in, const float* cos, const float* sin, float sign, int64_t head_dim, Bf16* out) {
  const int64_t half = head_dim / 2;
  for (int64_t i = 0; i < half; ++i) {
    const float s = sign * sin[i], a = widen(in[i]), b = widen(in[half + i]);
    out[i] = narrow(a * cos[i] - b * s);
    out[half + i] = narrow(a * s + b * cos[i]);
  }
}

void rotate_or_copy(const Bf16* in, const float* cos, const float* sin, int64_t position, float sign, int64_t head_dim,
                    Bf16* out) {
  if (cos == nullptr) {
    std::copy(in, in + head_dim, out);
    return;
  }
  rotate(in, cos + position * (head_dim / 2), sin + position * (head_dim / 2), sign, head_dim, out);
}

}  // namespace

void rms_norm_forward(RmsNormArgs args, const Bf16* x, const Bf16* branch, const Bf16* weight, Bf16* sum, Bf16* out,
                      float* inv_rms) {
  const int64_t cols = args.shape.cols;
  const std::vector<float> wide_weight = widened(weight, cols);
  Scratch in(cols), normed(cols);
  for_blocks(args.shape.rows, [&](int64_t row, int64_t rows) {
    const int64_t first = row * cols, count = rows * cols;
    if (branch != nullptr) {
      for (int64_t i = first; i < first + count; ++i) sum[i] = narrow(widen(x[i]) + widen(branch[i]));
    }
    const float* input = in.filled((branch != nullptr ? sum : x) + first, count);
    rms_norm_forward({{rows, cols}, args.epsilon}, input, nullptr, wide_weight.data(), nullptr, normed.data(),
                     inv_rms + row);
    narrow_all(normed.data(), out + first, count);
  });
}

void rms_norm_again(RowShape shape, const Bf16* sum, const Bf16* weight, const float* inv_rms, Bf16* out) {
  const std::vector<float> wide_weight = widened(weight, shape.cols);
  Scratch in(shape.cols), normed(shape.cols);
  for_blocks(shape.rows, [&](int64_t row, int64_t rows) {
    const int64_t first = row * shape.cols, count = rows * shape.cols;
    rms_norm_again({rows, shape.cols}, in.filled(sum + first, count), wide_weight.data(), inv_rms + row, normed.data());
    narrow_all(normed.data(), out + first, count);
  });
}

void rms_norm_backward(RowShape shape, const Bf16* grad_out, const Bf16* grad_sum, const Bf16* sum, const Bf16* weight,
                       const float* inv_rms, Bf16* grad_in, Bf16* grad_weight) {
  const int64_t cols = shape.cols;
  const std::vector<float> wide_weight = widened(weight, cols);
  std::vector<float> total(static_cast<size_t>(cols)), part(static_cast<size_t>(cols));
  Scratch g(cols), r(cols), x(cols), d(cols);
  for_blocks(shape.rows, [&](int64_t row, int64_t rows) {
    const int64_t first = row * cols, count = rows * cols;
    const float* residual = grad_sum != nullptr ? r.filled(grad_sum + first, count) : nullptr;
    rms_norm_backward({rows, cols}, g.filled(grad_out + first, count), residual, x.filled(sum + first, count),
                      wide_weight.data(), inv_rms + row, d.data(), part.data());
    narrow_all(d.data(), grad_in + first, count);
    for (size_t i = 0; i < total.size(); ++i) total[i] += part[i];
  });
  narrow_all(total.data(), grad_weight, cols);
}

void swiglu_forward(RowShape shape, const Bf16* gate_up, Bf16* out) {
  Scratch in(2 * shape.cols), y(shape.cols);
  for_blocks(shape.rows, [&](int64_t row, int64_t rows) {
    swiglu_forward({rows, shape.cols}, in.filled(gate_up + 2 * row * shape.cols, 2 * rows * shape.cols), y.data());
    narrow_all(y.data(), out + row * shape.cols, rows * shape.cols);
  });
}

void swiglu_backward(RowShape shape, const Bf16* grad_out, const Bf16* gate_up, Bf16* grad_gate_up) {
  Scratch g(shape.cols), in(2 * shape.cols), d(2 * shape.cols);
  for_blocks(shape.rows, [&](int64_t row, int64_t rows) {
    const int64_t first = row * shape.cols, count = rows * shape.cols;
    swiglu_backward({rows, shape.cols}, g.filled(grad_out + first, count), in.filled(gate_up + 2 * first, 2 * count),
                    d.data());
    narrow_all(d.data(), grad_gate_up + 2 * first, 2 * count);
  });
}

void split_qkv(QkvShape n, const Bf16* qkv, const float* cos, const float* sin, Bf16* q, Bf16* k, Bf16* v) {
  const int64_t d = n.head_dim;
  for (int64_t b = 0; b < n.batch; ++b) {
    for (int64_t s = 0; s < n.seq; ++s) {
      const Bf16* row = qkv + (s * n.batch + b) * (n.heads + 2 * n.groups) * d;
      for (int64_t h = 0; h < n.heads; ++h, row += d)
        rotate_or_copy(row, cos, sin, s, 1, d, q + ((b * n.heads + h) * n.seq + s) * d);
      for (int64_t h = 0; h < n.groups; ++h, row += d)
        rotate_or_copy(row, cos, sin, s, 1, d, k + ((b * n.groups + h) * n.seq + s) * d);
      for (int64_t h = 0; h < n.groups; ++h, row += d)
        rotate_or_copy(row, nullptr, nullptr, s, 1, d, v + ((b * n.groups + h) * n.seq + s) * d);
    }
  }
}

void merge_qkv(QkvShape n, HeadStrides3 strides, const Bf16* q, const Bf16* k, const Bf16* v, const float* cos,
               const float* sin, Bf16* qkv) {
  const int64_t d = n.head_dim;
  const auto at = [](const HeadStrides& x, int64_t b, int64_t h, int64_t s) {
    return b * x.batch + h * x.head + s * x.seq;
  };
  for (int64_t s = 0; s < n.seq; ++s) {
    for (int64_t b = 0; b < n.batch; ++b) {
      Bf16* row = qkv + (s * n.batch + b) * (n.heads + 2 * n.groups) * d;
      for (int64_t h = 0; h < n.heads; ++h, row += d)
        rotate_or_copy(q + at(strides.q, b, h, s), cos, sin, s, -1, d, row);
      for (int64_t h = 0; h < n.groups; ++h, row += d)
        rotate_or_copy(k + at(strides.k, b, h, s), cos, sin, s, -1, d, row);
      for (int64_t h = 0; h < n.groups; ++h, row += d)
        rotate_or_copy(v + at(strides.v, b, h, s), nullptr, nullptr, s, -1, d, row);
    }
  }
}

double sum_of_squares(const Bf16* x, int64_t count) {
  Scratch wide(32);
  constexpr int64_t kPart = kBlockRows * 32;
  double total = 0;
  for (int64_t i = 0; i < count; i += kPart) {
    const int64_t part = std::min(kPart, count - i);
    total += sum_of_squares(wide.filled(x + i, part), part);
  }
  return total;
}

}  // namespace ranklab::kernels
