// The distribution of a tensor's elements: counts in bins that are the same for every tensor, so that the counts of
// shards add up exactly to the counts of the whole. Each power of two is divided into four bins (a float's exponent and
// the first two bits of its fraction); magnitudes below 2^-32 count as zero, and magnitudes above 2^16 count in the
// outermost bin of their sign. Torch-free. Thread rule: plain data.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace ranklab {

struct ValueHistogram {
  static constexpr int64_t kPerPower = 4, kLeastPower = -32, kMagnitudes = 48 * kPerPower;
  static constexpr int64_t kBins = 2 * kMagnitudes + 1;  // in ascending order: negative values, zero, positive values

  std::string tag = {};
  double least = 0, most = 0, elements = 0, sum = 0, squares = 0;
  std::vector<double> counts = {};  // one per bin

  // The lower edge of a bin, whose index counts quarters of powers of two; index 0 is 2^-32.
  static double edge(int64_t quarters) {
    return std::ldexp(1.0 + static_cast<double>(quarters % kPerPower) / kPerPower,
                      static_cast<int>(quarters / kPerPower + kLeastPower));
  }
  // The bin that holds x. REQUIRES: x is not NaN.
  static int64_t bin(float x) {
    constexpr int64_t kDropped = 21;  // bits dropped of the 23 in a float's fraction
    const int64_t quarters = std::bit_cast<uint32_t>(std::fabs(x)) >> kDropped;
    const int64_t magnitude = std::clamp<int64_t>(quarters - (127 + kLeastPower) * kPerPower + 1, 0, kMagnitudes);
    return kMagnitudes + (x < 0 ? -magnitude : magnitude);
  }
  // The largest value that a bin holds.
  static double limit(int64_t bin) {
    const int64_t from_zero = bin - kMagnitudes;
    return from_zero < 0 ? -edge(-from_zero - 1) : edge(from_zero);
  }
};

}  // namespace ranklab
