// The random Hadamard transform of NVFP4 training: each group of 16 rows is multiplied by diag(signs), then by the
// Hadamard matrix of size 16, divided by 4: an orthogonal matrix T. Both operands of a product that sums over rows are
// transformed, (T dy)^T (T x) = dy^T x, and outliers are spread over 16 rows before quantization. Source: NVIDIA 2025,
// Pretraining Large Language Models with NVFP4, arXiv 2509.25149; the signs are drawn once per training run.
// Torch-free. Cost: 64 additions per 16 numbers, one pass. Thread rule: immutable, share freely.
#pragma once
#include <array>
#include <cstdint>

#include "core/precision/quantize.h"

namespace ranklab {

constexpr int64_t kHadamardRows = 16;

class RandomHadamard {
 public:
  explicit RandomHadamard(uint64_t seed);

  const std::array<float, kHadamardRows>& signs() const { return signs_; }
  // out [rows, cols], dense; may alias x if x is dense. REQUIRES: rows are a multiple of 16 (pad with zeros).
  void transform(const MatrixView& x, float* out) const;

 private:
  std::array<float, kHadamardRows> signs_{};
};

}  // namespace ranklab
