// Ranges of number formats, for plots that show where a tensor's values lie in them: FP16 and BF16 (IEEE 754, arXiv
// 1905.12322), E4M3 and E5M2 (arXiv 2209.05433), E2M1 (OCP MX, arXiv 2310.10537). Thread rule: constants.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace ranklab::viz {

struct FormatRange {
  std::string_view name;  // "E4M3"
  int exponent_bits = 0, mantissa_bits = 0;
  double largest = 0, smallest_normal = 0, smallest = 0;  // finite; the smallest ones above zero

  // Distance between neighbouring values at a magnitude.
  double step_at(double magnitude) const;
};

std::span<const FormatRange> format_ranges();
// Null if it is none of these formats.
const FormatRange* find_format_range(int exponent_bits, int mantissa_bits);

}  // namespace ranklab::viz
