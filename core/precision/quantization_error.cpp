#include "core/precision/quantization_error.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ranklab {

double QuantizationError::sqnr_db() const {
  return noise > 0 ? 10 * std::log10(signal / noise) : std::numeric_limits<double>::infinity();
}

QuantizationError measure_quantization(const NumberFormat& format, std::span<const float> values, double scale) {
  QuantizationError error;
  const double largest = format.largest();
  for (const float x : values) {
    if (!std::isfinite(x)) continue;
    const auto scaled = static_cast<float>(x * scale);
    const double back = decode(format, encode(format, scaled)) / scale;
    ++error.count;
    error.nonzero += x != 0 ? 1 : 0;
    error.underflow += x != 0 && back == 0 ? 1 : 0;
    error.saturated += std::abs(static_cast<double>(scaled)) > largest ? 1 : 0;
    error.signal += static_cast<double>(x) * x;
    error.noise += (back - x) * (back - x);
  }
  return error;
}

double amax_scale(const NumberFormat& format, std::span<const float> values) {
  double amax = 0;
  for (const float x : values) {
    if (std::isfinite(x)) amax = std::max(amax, std::abs(static_cast<double>(x)));
  }
  return amax > 0 ? format.largest() / amax : 1;
}

}  // namespace ranklab
