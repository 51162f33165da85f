// The effect of rounding numbers to a format: how many underflow to zero, how many saturate, and the ratio of signal to
// error. Torch-free. Cost: one encoding per number. Thread rule: pure.
#pragma once
#include <cstdint>
#include <span>

#include "core/precision/number_format.h"

namespace ranklab {

struct QuantizationError {
  int64_t count = 0;
  int64_t nonzero = 0;           // nonzero before rounding
  int64_t underflow = 0;         // of these, zero after it (of either sign)
  int64_t saturated = 0;         // beyond the largest before rounding
  double signal = 0, noise = 0;  // sums of squares

  double underflow_share() const { return count > 0 ? static_cast<double>(underflow) / static_cast<double>(count) : 0; }
  double saturated_share() const { return count > 0 ? static_cast<double>(saturated) / static_cast<double>(count) : 0; }
  double sqnr_db() const;  // 10 log10(signal / noise); infinite without noise
};

// Multiplies each number by `scale`, rounds and saturates it, and divides by `scale`. Non-finite numbers are left out.
QuantizationError measure_quantization(const NumberFormat& format, std::span<const float> values, double scale = 1);
// The scale that maps amax to the format's largest number (current scaling); 1 if all are zero.
double amax_scale(const NumberFormat& format, std::span<const float> values);

}  // namespace ranklab
