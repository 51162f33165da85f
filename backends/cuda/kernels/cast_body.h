// The per-thread code of rounding to 8-bit codes, eight neighbours of a row at a time: to nearest, and only codes. The
// same codes as round_element() of operand_body.h, but that NaN has no sign; a GPU of compute capability 8.9 or higher
// converts by its own instruction. The kernels (cast_kernels.cu) distribute packs over threads; a test runs the same
// code in loops on a CPU. C++17, as used for nvcc. Thread rule: pure except for what it writes.
#pragma once
#include <cstdint>

#include "backends/cuda/kernels/operand_body.h"

namespace ranklab {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
#define RANKLAB_CONVERTS_TO_FP8
#endif

struct alignas(8) EightCodes {
  uint8_t code[kNeighbours];
};

// Whether round_pack() does all that is wanted.
inline bool casts(const DeviceMatrix& m, const RoundingGrid& grid, const DeviceNoise& noise, const DeviceRounded& out) {
  constexpr uint32_t kBits = 8;
  const bool whole_packs = m.width == 1 || m.width % kNeighbours == 0;
  const bool aligned = out.stride % kNeighbours == 0 && reinterpret_cast<uintptr_t>(out.codes) % kNeighbours == 0;
  const bool fp8 = grid.code_bits == kBits && (grid.mantissa_bits == 2 || grid.mantissa_bits == 3);
  return (out.codes != nullptr || out.turned != nullptr) && out.values == nullptr && noise.row_numbers == nullptr &&
         fp8 && whole_packs && aligned && in_packs(m);
}

// With three bits of mantissa the format is E4M3, with two E5M2.
RANKLAB_EVERYWHERE void codes_of_two(const RoundingGrid& grid, float first, float second, uint8_t* codes) {
#ifdef RANKLAB_CONVERTS_TO_FP8
  uint16_t both = 0;
  if (grid.mantissa_bits == 3) {
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(both) : "f"(second), "f"(first));
  } else {
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(both) : "f"(second), "f"(first));
  }
  codes[0] = static_cast<uint8_t>(both);
  codes[1] = static_cast<uint8_t>(both >> 8);
#else
  const auto code = [&](float x) {
    return static_cast<uint8_t>(code_of_rounded<OneLane>(grid, round_nearest<OneLane>(grid, x)));
  };
  codes[0] = code(first);
  codes[1] = code(second);
#endif
}

// The codes of the kNeighbours elements of a row from `col` on, a multiple of kNeighbours. REQUIRES: casts().
RANKLAB_EVERYWHERE EightCodes round_pack(const DeviceMatrix& m, const RoundingGrid& grid, const float* scales,
                                         int64_t row, int64_t col) {
  float x[kNeighbours];
  load_numbers<kNeighbours>(m, row, col, x);
  const float* scale = scales + group_of(m, row, col);
  float inverse = inverse_scale(scale[0]);
  for (int i = 0; i < kNeighbours; ++i) {
    if (m.width == 1 && i > 0) inverse = inverse_scale(scale[i]);
    x[i] *= inverse;
  }
  EightCodes codes;
  for (int i = 0; i < kNeighbours; i += 2) codes_of_two(grid, x[i], x[i + 1], codes.code + i);
  return codes;
}

}  // namespace ranklab
#undef RANKLAB_CONVERTS_TO_FP8
