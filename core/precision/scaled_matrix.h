// A quantized matrix as bytes (the wire format): codes of one byte per element (4-bit formats: two per byte, the first
// in the low half), and the scales of the groups in fp32 (4 bytes) or, for power-of-two rules and for NVFP4's second
// level, in E8M0 or E4M3 (one byte). If groups are one row high, each row is self-contained: its codes, then its
// scales; such rows may be sent individually. Otherwise all codes come first, then all scales. Unpacking gives the
// output of quantize_dequantize(), bit for bit; groups with non-finite numbers become NaN. Torch-free. Cost: a pass
// each. Thread rule: pure.
#pragma once
#include <array>
#include <cstddef>
#include <span>

#include "core/precision/quantize.h"

namespace ranklab {

// The value of each code, indexed by code.
std::array<float, 256> code_values(const NumberFormat& format);

struct PackedLayout {
  int64_t code_bytes = 0;       // per row
  int64_t row_scale_bytes = 0;  // per row, after its codes
  int64_t end_scale_bytes = 0;  // after all rows
  int64_t rows = 0;

  int64_t row_bytes() const { return code_bytes + row_scale_bytes; }
  int64_t bytes() const { return rows * row_bytes() + end_scale_bytes; }
};
// REQUIRES: precision.quantized().
PackedLayout packed_layout(const TensorPrecision& precision, Along along, int64_t rows, int64_t cols);

// `amax`: per group, as from group_amax() or as agreed on by ranks. `tensor_amax`: used only by kE4M3, where
// unpack_matrix() needs it, too. `noise` null: round to nearest. REQUIRES: no number above its group's amax is
// infinite.
void pack_matrix(const MatrixView& x, const TensorPrecision& precision, Along along, std::span<const float> amax,
                 float tensor_amax, const RoundingNoise* noise, std::span<std::byte> out);
// The same with the groups' own amax, and the matrix's amax, which is returned, as tensor_amax (for kE4M3).
float pack_matrix(const MatrixView& x, const TensorPrecision& precision, Along along, const RoundingNoise* noise,
                  std::span<std::byte> out);

// out [rows, cols], dense.
void unpack_matrix(std::span<const std::byte> bytes, const TensorPrecision& precision, Along along, int64_t rows,
                   int64_t cols, float tensor_amax, float* out);

}  // namespace ranklab
