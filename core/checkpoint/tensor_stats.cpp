#include "core/checkpoint/tensor_stats.h"

#include <algorithm>
#include <cmath>

namespace ranklab {

TensorStats tensor_stats(TensorType type, std::span<const std::byte> bytes) {
  const uint64_t width = size_bytes(type);
  TensorStats stats{.elements = bytes.size() / width};
  const auto value = [&](uint64_t i) { return element_value(type, bytes.data() + i * width); };
  uint64_t finite = 0;
  double sum = 0;
  for (uint64_t i = 0; i < stats.elements; ++i) {
    const double x = value(i);
    stats.nans += std::isnan(x) ? 1 : 0;
    stats.infinities += std::isinf(x) ? 1 : 0;
    stats.zeros += x == 0 ? 1 : 0;
    if (!std::isfinite(x)) continue;
    ++finite;
    sum += x;
    stats.largest = std::max(stats.largest, std::fabs(x));
  }
  if (finite == 0) return stats;
  stats.mean = sum / static_cast<double>(finite);
  double squares = 0;
  for (uint64_t i = 0; i < stats.elements; ++i) {
    const double x = value(i);
    if (std::isfinite(x)) squares += (x - stats.mean) * (x - stats.mean);
  }
  stats.std = std::sqrt(squares / static_cast<double>(finite));
  return stats;
}

}  // namespace ranklab
