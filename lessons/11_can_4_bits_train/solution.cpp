// Lesson 11, solution. The exponent of the block's largest number decides; the draw decides between two neighbours.
#include "exercise.h"

#include <algorithm>
#include <cmath>

using namespace ranklab::lesson;

namespace {

// The index of the largest number that is not above `size`, at most the last but one.
size_t below(double size) {
  size_t place = 0;
  while (place + 2 < kE2M1.size() && kE2M1[place + 1] <= size) ++place;
  return place;
}

}  // namespace

extern "C" double mx_scale(std::span<const double> block) {
  double most = 0;
  for (const double x : block) most = std::max(most, std::abs(x));
  if (most == 0) return 1;
  int exponent = 0;
  std::frexp(most, &exponent);  // most is m * 2 ^ (exponent - 1), m from 1 up to 2
  return std::ldexp(1.0, exponent - 1 - 2);
}

extern "C" double nearest(double x) {
  const double size = std::min(std::abs(x), kLargest);
  const size_t place = below(size);
  const double middle = (kE2M1[place] + kE2M1[place + 1]) / 2;
  const bool up = size > middle || (size == middle && place % 2 == 1);
  return std::copysign(kE2M1[up ? place + 1 : place], x);
}

extern "C" double stochastic(double x, double draw) {
  const double size = std::min(std::abs(x), kLargest);
  const size_t place = below(size);
  const double chance = (size - kE2M1[place]) / (kE2M1[place + 1] - kE2M1[place]);
  return std::copysign(kE2M1[draw < chance ? place + 1 : place], x);
}
