// The per-thread code of rounding to 8-bit codes, for eight neighbours of a row at a time. It rounds to nearest and
// produces only codes. They equal those of round_element() in operand_body.h, except that NaN has no sign; a GPU of
// compute capability 8.9 or higher converts with its own instruction. The kernels (cast_kernels.cu) distribute packs
// over threads; a test runs the same code in loops on a CPU. C++17, as used for nvcc. Thread rule: pure except for what
// it writes.
#pragma once
#include <cstdint>

#include "backends/cuda/kernels/operand_body.h"

namespace ranklab {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
#define RANKLAB_CONVERTS_TO_FP8
#endif

// The codes of eight neighbours, the first in the lowest byte.
struct alignas(8) EightCodes {
  uint32_t four[2];
};

// Whether the format is E4M3 or E5M2, to which GPUs can convert.
RANKLAB_EVERYWHERE bool is_fp8(const RoundingGrid& grid) {
  return grid.code_bits == 8 && (grid.mantissa_bits == 2 || grid.mantissa_bits == 3);
}

// DeviceRounding::casts_at_once().
inline bool takes_at_once(const DeviceMatrix& m, const RoundingGrid& grid, const ScaleMaker& maker) {
  constexpr int64_t kGroup = 128;
  const bool rows = m.height == 1 && m.width == kGroup, columns = m.height == kGroup && m.width == 1;
  const bool squares = m.height == kGroup && m.width == kGroup;
  return m.bf16 && is_fp8(grid) && (rows || columns || squares) && maker.rule != ScaleMaker::Rule::kE4M3 && in_packs(m);
}

// Whether codes_of() can produce everything that is requested.
inline bool casts(const DeviceMatrix& m, const RoundingGrid& grid, const DeviceNoise& noise, const DeviceRounded& out) {
  const bool whole_packs = m.width == 1 || m.width % kNeighbours == 0;
  const bool aligned = out.stride % kNeighbours == 0 && reinterpret_cast<uintptr_t>(out.codes) % kNeighbours == 0;
  return (out.codes != nullptr || out.turned != nullptr) && out.values == nullptr && noise.row_numbers == nullptr &&
         is_fp8(grid) && whole_packs && aligned && in_packs(m);
}

// With three bits of mantissa the format is E4M3, with two E5M2.
RANKLAB_EVERYWHERE uint32_t codes_of_four(const RoundingGrid& grid, const float* x) {
  uint32_t codes = 0;
#ifdef RANKLAB_CONVERTS_TO_FP8
  if (grid.mantissa_bits == 3) {
    asm("{\n.reg .b16 low, high;\ncvt.rn.satfinite.e4m3x2.f32 low, %2, %1;\n"
        "cvt.rn.satfinite.e4m3x2.f32 high, %4, %3;\nmov.b32 %0, {low, high};\n}"
        : "=r"(codes)
        : "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3]));
  } else {
    asm("{\n.reg .b16 low, high;\ncvt.rn.satfinite.e5m2x2.f32 low, %2, %1;\n"
        "cvt.rn.satfinite.e5m2x2.f32 high, %4, %3;\nmov.b32 %0, {low, high};\n}"
        : "=r"(codes)
        : "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3]));
  }
#else
  for (int i = 0; i < 4; ++i)
    codes |= static_cast<uint32_t>(code_of_rounded<OneLane>(grid, round_nearest<OneLane>(grid, x[i]))) << (8 * i);
#endif
  return codes;
}

// Inverses of the scales of a pack's eight elements: one for all, or one for each.
template <int kCount>
struct Inverses {
  float each[kCount];
  RANKLAB_EVERYWHERE float of(int item) const { return each[kCount == 1 ? 0 : item]; }
};

// Where the scale of an element is found. kGroups works for any form of groups; for the others no division is needed.
enum class ScalePlaces { kWhole, kRows, kColumns, kGroups };

template <ScalePlaces kPlaces>
struct Scales {
  const DeviceMatrix& m;
  const float* scales;
  float whole;  // read once by each thread
  static constexpr bool kSameInRows = kPlaces == ScalePlaces::kWhole || kPlaces == ScalePlaces::kColumns;

  RANKLAB_EVERYWHERE Scales(const DeviceMatrix& matrix, const float* of_groups)
      : m(matrix), scales(of_groups), whole(kPlaces == ScalePlaces::kWhole ? inverse_scale(of_groups[0]) : 0) {}

  RANKLAB_EVERYWHERE auto inverses(int64_t row, int64_t col) const {
    if constexpr (kPlaces == ScalePlaces::kWhole) {
      return Inverses<1>{{whole}};
    } else if constexpr (kPlaces == ScalePlaces::kRows) {
      return Inverses<1>{{inverse_scale(scales[row])}};
    } else {
      const float* first = scales + (kPlaces == ScalePlaces::kColumns ? col : group_of(m, row, col));
      const int64_t step = kPlaces == ScalePlaces::kColumns || m.width == 1 ? 1 : 0;
      Inverses<kNeighbours> result;
      for (int i = 0; i < kNeighbours; ++i) result.each[i] = inverse_scale(first[i * step]);
      return result;
    }
  }
};

// The codes of a pack.
template <typename Pack, int kCount>
RANKLAB_EVERYWHERE EightCodes codes_of(const Pack& pack, const RoundingGrid& grid, const Inverses<kCount>& inverses) {
  float x[kNeighbours];
  numbers_of(pack, x);
  for (int i = 0; i < kNeighbours; ++i) x[i] *= inverses.of(i);
  return {{codes_of_four(grid, x), codes_of_four(grid, x + 4)}};
}

// Calls f(bf16, places) with integral constants that fit the matrix and its groups. REQUIRES: casts().
template <typename F>
void with_cast(const DeviceMatrix& m, const F& f) {
  const auto with_places = [&](auto bf16) {
    const bool whole_rows = m.width >= m.cols, whole_columns = m.height >= m.rows;
    const auto call = [&](auto places) { f(bf16, places); };
    if (whole_rows && whole_columns) return call(std::integral_constant<ScalePlaces, ScalePlaces::kWhole>());
    if (whole_rows && m.height == 1) return call(std::integral_constant<ScalePlaces, ScalePlaces::kRows>());
    if (whole_columns && m.width == 1) return call(std::integral_constant<ScalePlaces, ScalePlaces::kColumns>());
    call(std::integral_constant<ScalePlaces, ScalePlaces::kGroups>());
  };
  if (m.bf16) return with_places(std::true_type());
  with_places(std::false_type());
}

}  // namespace ranklab
#undef RANKLAB_CONVERTS_TO_FP8
