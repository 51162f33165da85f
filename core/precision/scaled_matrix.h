// A rounded matrix as bytes, as it travels: a code of one byte an element (two in a byte of 4-bit formats, the first in
// the low half), and the scales of its groups, in fp32 (4 bytes) or, of the rules with powers of two and of NVFP4's
// second level, in E8M0 or E4M3 (one byte). A row of groups that are one row high stands for itself: its codes, then
// its scales; such rows may be sent one by one. Of other groups all codes come first, then all scales. Reading back
// gives what quantize_dequantize() gives, bit for bit; groups that are not finite come back as NaN. Torch-free. Cost: a
// pass each. Thread rule: pure.
#pragma once
#include <array>
#include <cstddef>
#include <span>

#include "core/precision/quantize.h"

namespace ranklab {

// The number of each code.
std::array<float, 256> code_values(const NumberFormat& format);

struct PackedLayout {
  int64_t code_bytes = 0;       // of a row
  int64_t row_scale_bytes = 0;  // behind the codes of each row
  int64_t end_scale_bytes = 0;  // behind all rows
  int64_t rows = 0;

  int64_t row_bytes() const { return code_bytes + row_scale_bytes; }
  int64_t bytes() const { return rows * row_bytes() + end_scale_bytes; }
};
// REQUIRES: precision.quantized().
PackedLayout packed_layout(const TensorPrecision& precision, Along along, int64_t rows, int64_t cols);

// `amax`: of each group, as group_amax() gives it or as ranks agreed on it. `tensor_amax`: read by kE4M3 alone, whose
// reader needs it, too. `noise` is null to round to nearest. REQUIRES: no number above its group's amax is infinite.
void pack_matrix(const MatrixView& x, const TensorPrecision& precision, Along along, std::span<const float> amax,
                 float tensor_amax, const RoundingNoise* noise, std::span<std::byte> out);
// The same with the groups' own magnitudes; of kE4M3 with the whole matrix' as tensor_amax, which is returned.
float pack_matrix(const MatrixView& x, const TensorPrecision& precision, Along along, const RoundingNoise* noise,
                  std::span<std::byte> out);

// out [rows, cols], dense.
void unpack_matrix(std::span<const std::byte> bytes, const TensorPrecision& precision, Along along, int64_t rows,
                   int64_t cols, float tensor_amax, float* out);

}  // namespace ranklab
