// The formats against files that the PyPI package ml_dtypes wrote (make_ml_dtypes_golden.py): every code's value, and
// the codes of numbers of all kinds.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>

#include "core/precision/block_scale.h"
#include "core/precision/number_format.h"

namespace ranklab {
namespace {

struct Golden {
  std::string kind;
  unsigned first = 0, second = 0;
};

std::vector<Golden> read(const std::string& format) {
  std::ifstream file(std::string(RANKLAB_GOLDEN) + "/" + format + ".txt");
  std::vector<Golden> lines;
  for (std::string line; std::getline(file, line);) {
    char kind[8] = {};
    Golden golden;
    if (std::sscanf(line.c_str(), "%7s %x %x", kind, &golden.first, &golden.second) != 3) continue;
    golden.kind = kind;
    lines.push_back(golden);
  }
  return lines;
}

bool same(double a, double b) { return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b); }

// Numbers within the range also by additions and masks (rounding_grid.h).
void expect_fast_code(const NumberFormat& f, float x, uint8_t code) {
  if (f.special == NumberFormat::Special::kUnsignedNan || !(std::abs(static_cast<double>(x)) <= f.largest())) return;
  const RoundingGrid grid = rounding_grid(f);
  const float rounded = round_nearest<OneLane>(grid, x);
  EXPECT_TRUE(same(static_cast<double>(rounded), decode(f, code))) << f.name << " of " << x;
  EXPECT_EQ(code_of_rounded<OneLane>(grid, rounded), code) << f.name << " of " << x;
}

TEST(NumberFormat, IsThatOfMlDtypes) {
  for (const NumberFormat& f : number_formats()) {
    int codes = 0, numbers = 0;
    for (const Golden& golden : read(std::string(f.name))) {
      if (golden.kind == "code") {
        const auto value = static_cast<double>(std::bit_cast<float>(golden.second));
        EXPECT_TRUE(same(decode(f, static_cast<uint8_t>(golden.first)), value)) << f.name << " code " << golden.first;
        ++codes;
        continue;
      }
      const auto x = std::bit_cast<float>(golden.first);
      const uint8_t got = encode(f, x, Overflow::kPropagate);
      EXPECT_TRUE(got == golden.second || same(decode(f, got), decode(f, static_cast<uint8_t>(golden.second))))
          << f.name << " of " << x << ": " << int(got) << ", ml_dtypes has " << golden.second;
      expect_fast_code(f, x, static_cast<uint8_t>(golden.second));
      ++numbers;
    }
    EXPECT_EQ(codes, f.codes()) << f.name;
    EXPECT_GT(numbers, 1000) << f.name;
  }
}

}  // namespace
}  // namespace ranklab
