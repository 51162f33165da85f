// What rounding to a format does to numbers: how many become zero that were not, how many lie beyond the largest, and
// how large the error is beside the signal. Torch-free. Cost: a code a number. Thread rule: pure.
#pragma once
#include <cstdint>
#include <span>

#include "core/precision/number_format.h"

namespace ranklab {

struct QuantizationError {
  int64_t count = 0;
  int64_t nonzero = 0;           // before
  int64_t underflow = 0;         // of these: zero after, of either sign
  int64_t saturated = 0;         // beyond the largest, before rounding
  double signal = 0, noise = 0;  // sums of squares

  double underflow_share() const { return count > 0 ? static_cast<double>(underflow) / static_cast<double>(count) : 0; }
  double saturated_share() const { return count > 0 ? static_cast<double>(saturated) / static_cast<double>(count) : 0; }
  double sqnr_db() const;  // 10 log10(signal / noise); infinite without noise
};

// Each number times `scale`, rounded, saturated, and divided by it again. Numbers that are not finite are left out.
QuantizationError measure_quantization(const NumberFormat& format, std::span<const float> values, double scale = 1);
// Brings the largest magnitude to the format's largest number (current scaling); 1 when all are zero.
double amax_scale(const NumberFormat& format, std::span<const float> values);

}  // namespace ranklab
