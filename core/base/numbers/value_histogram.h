// How the elements of a tensor are spread: their number in bins that are the same for every tensor, so that shards'
// counts add up to those of the whole, to the last one. A bin is a quarter of the way from one power of two to the
// next, the exponent and two bits of a float's fraction; below 2^-32 elements count as zero, above 2^16 as the largest.
// Torch-free. Thread rule: plain data.
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
  static constexpr int64_t kBins = 2 * kMagnitudes + 1;  // ascending: negative ones, zero, positive ones

  std::string tag = {};
  double least = 0, most = 0, elements = 0, sum = 0, squares = 0;
  std::vector<double> counts = {};  // of each bin

  // The lower edge of a bin, counted in quarters of powers of two: 0 is 2^-32.
  static double edge(int64_t quarters) {
    return std::ldexp(1.0 + static_cast<double>(quarters % kPerPower) / kPerPower,
                      static_cast<int>(quarters / kPerPower + kLeastPower));
  }
  // The bin that holds a value, which is no NaN.
  static int64_t bin(float x) {
    constexpr int64_t kDropped = 21;  // of the 23 bits of a float's fraction
    const int64_t quarters = std::bit_cast<uint32_t>(std::fabs(x)) >> kDropped;
    const int64_t magnitude = std::clamp<int64_t>(quarters - (127 + kLeastPower) * kPerPower + 1, 0, kMagnitudes);
    return kMagnitudes + (x < 0 ? -magnitude : magnitude);
  }
  // The largest value of a bin.
  static double limit(int64_t bin) {
    const int64_t from_zero = bin - kMagnitudes;
    return from_zero < 0 ? -edge(-from_zero - 1) : edge(from_zero);
  }
};

}  // namespace ranklab
