#include "lessons/11_can_4_bits_train/block_picture.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "core/base/text.h"
#include "core/precision/block_scale.h"
#include "core/precision/quantize.h"
#include "core/precision/recipe.h"
#include "lessons/11_can_4_bits_train/exercise.h"
#include "lessons/11_can_4_bits_train/four_bits.h"
#include "lessons/glyphs.h"

namespace ranklab::lesson {
namespace {

// A number of E2M1 as a bar with its magnitude; "?" for other numbers.
std::string bar_of(double value) {
  for (size_t i = 0; i < kE2M1.size(); ++i)
    if (std::abs(value) == kE2M1[i]) return i == 0 ? "·" : height(static_cast<double>(i) / 8);
  return "?";
}

std::vector<double> drawn_block(int index) {
  static const std::vector<float> kNumbers = normal_numbers(1 << 15);
  const auto begin = kNumbers.begin() + 32 * index;
  return {begin, begin + 32};
}

// `block` divided by `scale` and rounded.
std::string rounded_block(const std::vector<double>& block, double scale, const std::function<double(double)>& round) {
  std::string text;
  for (const double x : block) text += bar_of(round(x / scale));
  return text;
}

double e2m1_rounded(double x) { return decode(*e2m1(), encode(*e2m1(), static_cast<float>(x))); }

double amax_of(const std::vector<double>& block) {
  double most = 0;
  for (const double x : block) most = std::max(most, std::abs(x));
  return most;
}

double scale_of(const TensorPrecision& precision, double amax) {
  return static_cast<double>(block_scale(precision, static_cast<float>(amax), 0).scale);
}

}  // namespace

void draw_blocks(Screen& screen) {
  std::vector<double> block = drawn_block(1);
  block[20] = 12;
  std::string exact;
  for (const double x : block) exact += height(std::abs(x) / 4);
  const TensorPrecision mxfp4 = mxfp4_recipe().linear.activation;
  const std::vector<double> first(block.begin(), block.begin() + 16), second(block.begin() + 16, block.end());
  const auto halves = [&](double a, double b) {
    return rounded_block(first, a, e2m1_rounded) + "|" + rounded_block(second, b, e2m1_rounded);
  };
  screen.line("  the numbers           " + exact.substr(0, exact.size() / 2) + "|" + exact.substr(exact.size() / 2));
  const double whole = scale_of(mxfp4, amax_of(block));
  screen.line("  a block of 32         " + screen.paint(Ink::kYellow, halves(whole, whole)));
  screen.line("  two blocks of 16      " +
              screen.paint(Ink::kGreen, halves(scale_of(mxfp4, amax_of(first)), scale_of(mxfp4, amax_of(second)))));
  screen.paragraph("Magnitudes; · is zero. The large number takes the others of its block down with it.");
}

void draw_yours(Screen& picture, double (*scale)(std::span<const double>), double (*round)(double)) {
  picture.line("  Blocks of 32 normal numbers in MXFP4: magnitudes, · zero, ? no number of E2M1");
  for (const int index : {0, 1, 2}) {
    const std::vector<double> block = drawn_block(index);
    const double ours = scale_of(mxfp4_recipe().linear.activation, amax_of(block)), yours = scale(block);
    picture.line(strprintf("    right  %s  scale %g", rounded_block(block, ours, e2m1_rounded).c_str(), ours));
    picture.line(strprintf("    yours  %s  scale %g", rounded_block(block, yours, round).c_str(), yours));
  }
}

void draw_chances(Screen& picture, double (*draw)(double, double)) {
  constexpr int kColumns = 49, kDraws = 64;
  std::string right, yours;
  for (int column = 0; column < kColumns; ++column) {
    const double x = 6.0 * column / (kColumns - 1);
    size_t below = 0;
    while (below + 2 < kE2M1.size() && kE2M1[below + 1] <= x) ++below;
    int up = 0;
    for (int i = 0; i < kDraws; ++i) up += draw(x, (i + 0.5) / kDraws) == kE2M1[below + 1] ? 1 : 0;
    right += height((x - kE2M1[below]) / (kE2M1[below + 1] - kE2M1[below]));
    yours += height(static_cast<double>(up) / kDraws);
  }
  picture.paragraph("How often a number goes up to its upper neighbour, from 0 to 6: ▁ never, █ always");
  picture.line("    right  " + right);
  picture.line("    yours  " + yours);
}

}  // namespace ranklab::lesson
