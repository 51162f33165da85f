#include "viz/model/tables/format_range.h"

#include <algorithm>
#include <cmath>

namespace ranklab::viz {
namespace {

constexpr FormatRange kFormats[] = {
    {"FP16", 5, 10, 65504, 0x1p-14, 0x1p-24},
    {"BF16", 8, 7, 0x1.FEp127, 0x1p-126, 0x1p-133},
    {"E4M3", 4, 3, 448, 0x1p-6, 0x1p-9},
    {"E5M2", 5, 2, 57344, 0x1p-14, 0x1p-16},
    {"E2M1", 2, 1, 6, 1, 0.5},
};

}  // namespace

double FormatRange::step_at(double magnitude) const {
  const double normal = std::max(magnitude, smallest_normal);
  return std::ldexp(1.0, std::ilogb(normal) - mantissa_bits);
}

std::span<const FormatRange> format_ranges() { return kFormats; }

const FormatRange* find_format_range(int exponent_bits, int mantissa_bits) {
  for (const FormatRange& format : kFormats) {
    if (format.exponent_bits == exponent_bits && format.mantissa_bits == mantissa_bits) return &format;
  }
  return nullptr;
}

}  // namespace ranklab::viz
