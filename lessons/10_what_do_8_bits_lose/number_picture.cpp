#include "lessons/10_what_do_8_bits_lose/number_picture.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "core/base/text.h"
#include "core/precision/number_format.h"
#include "lessons/10_what_do_8_bits_lose/tensors.h"
#include "lessons/glyphs.h"

namespace ranklab::lesson {
namespace {

// A row has one column for each power of two, starting with 2^kFirstPower.
constexpr int kFirstPower = -26, kPowers = 44;

std::string range_row(const NumberFormat& format) {
  std::string text;
  for (int power = kFirstPower; power < kFirstPower + kPowers; ++power) {
    const double low = std::ldexp(1.0, power);
    int numbers = 0;
    for (int code = 0; code < 128; ++code) {
      const double value = decode(format, static_cast<uint8_t>(code));
      numbers += value >= low && value < 2 * low ? 1 : 0;
    }
    text += numbers == 0 ? "·" : std::to_string(numbers);
  }
  return text;
}

std::string histogram_row(const std::vector<float>& numbers) {
  std::vector<double> counts(kPowers, 0.0);
  double most = 1;
  for (const float number : numbers) {
    if (number == 0) continue;
    const int place = std::ilogb(number) - kFirstPower;
    if (place < 0 || place >= kPowers) continue;
    most = std::max(most, ++counts[static_cast<size_t>(place)]);
  }
  std::string text;
  for (const double count : counts) text += count < 1e-3 * most ? " " : height(count / most);
  return text;
}

}  // namespace

void draw_ranges(Screen& screen, const std::vector<double>& deviations) {
  constexpr int kLabel = 18;
  std::string axis(kPowers + 8, ' ');
  for (const int power : {-24, -16, -8, 0, 8, 16}) {
    const std::string text = power == 0 ? "1" : "2^" + std::to_string(power);
    axis.replace(static_cast<size_t>(power - kFirstPower), text.size(), text);
  }
  screen.line("  " + padded("", kLabel) + axis);
  for (const double deviation : deviations)
    screen.line("  " + padded(strprintf("deviation %g", deviation), kLabel) + histogram_row(normal_numbers(deviation)));
  for (const char* name : {"e4m3", "e5m2"})
    screen.line("  " + padded(std::string(name) + " has", kLabel) +
                screen.paint(Ink::kCyan, range_row(find_number_format(name))));
  screen.paragraph(
      "Above: how many of a million numbers lie between two powers of two. Below: how many numbers the "
      "format has there. What stands above a · becomes zero, or the largest.");
}

namespace {

// The number to which each x is rounded, as a letter that changes from number to number; "?" if it is not a number of
// the format.
std::string steps_row(double from, double to, int columns, const std::function<double(double)>& round) {
  std::vector<double> codes;
  for (int code = 0; code < 0x7f; ++code)
    codes.push_back(decode(find_number_format("e4m3"), static_cast<uint8_t>(code)));
  std::string text;
  for (int column = 0; column < columns; ++column) {
    const double value = round(from + (to - from) * column / (columns - 1));
    const auto found = std::find(codes.begin(), codes.end(), value);
    text += found == codes.end() ? '?' : static_cast<char>('a' + (found - codes.begin()) % 26);
  }
  return text;
}

}  // namespace

void draw_steps(Screen& picture, double (*yours)(double)) {
  constexpr int kColumns = 65, kLabel = 8;
  const auto right = [](double x) {
    return decode(find_number_format("e4m3"), encode(find_number_format("e4m3"), static_cast<float>(x)));
  };
  picture.paragraph("Where a number goes: the same letter, the same number of E4M3; ? is none of them");
  struct Part {
    const char *from, *to;
    double begin, end;
  };
  for (const Part& part : {Part{"0", "8/512", 0, 8.0 / 512}, Part{"12", "20", 12, 20}, Part{"400", "528", 400, 528}}) {
    const std::string a = steps_row(part.begin, part.end, kColumns, right);
    const std::string b = steps_row(part.begin, part.end, kColumns, yours);
    std::string differs;
    for (size_t i = 0; i < a.size(); ++i) differs += a[i] == b[i] ? ' ' : '^';
    picture.line("    " + padded("x", kLabel) + padded(part.from, kColumns - columns_of(part.to)) + part.to);
    picture.line("    " + padded("right", kLabel) + a);
    picture.line("    " + padded("yours", kLabel) + b);
    differs.erase(differs.find_last_not_of(' ') + 1);
    if (a != b) picture.line("    " + padded("", kLabel) + picture.paint(Ink::kRed, differs));
  }
}

}  // namespace ranklab::lesson
