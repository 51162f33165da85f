#include "core/precision/number_format.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/base/named_rows.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

using Special = NumberFormat::Special;

constexpr std::array kFormats = {
    NumberFormat{.name = "e4m3", .exponent_bits = 4, .mantissa_bits = 3, .bias = 7, .special = Special::kNan},
    NumberFormat{.name = "e5m2", .exponent_bits = 5, .mantissa_bits = 2, .bias = 15, .special = Special::kIeee},
    NumberFormat{.name = "e2m1", .exponent_bits = 2, .mantissa_bits = 1, .bias = 1, .special = Special::kNone},
    NumberFormat{.name = "e8m0", .exponent_bits = 8, .mantissa_bits = 0, .bias = 127, .special = Special::kUnsignedNan},
};

int top_exponent(const NumberFormat& f) { return (1 << f.exponent_bits) - 1; }
int top_mantissa(const NumberFormat& f) { return (1 << f.mantissa_bits) - 1; }

bool is_nan(const NumberFormat& f, int exponent, int mantissa) {
  if (exponent != top_exponent(f)) return false;
  if (f.special == Special::kIeee) return mantissa != 0;
  return f.special != Special::kNone && mantissa == top_mantissa(f);
}

// The absolute value of a code.
double magnitude(const NumberFormat& f, int exponent, int mantissa) {
  if (is_nan(f, exponent, mantissa)) return std::numeric_limits<double>::quiet_NaN();
  if (f.special == Special::kIeee && exponent == top_exponent(f)) return std::numeric_limits<double>::infinity();
  if (f.special == Special::kUnsignedNan) return std::ldexp(1.0, exponent - f.bias);
  if (exponent == 0) return std::ldexp(mantissa, 1 - f.bias - f.mantissa_bits);
  return std::ldexp((1 << f.mantissa_bits) + mantissa, exponent - f.bias - f.mantissa_bits);
}

uint8_t nan_code(const NumberFormat& f) {
  return static_cast<uint8_t>(top_exponent(f) << f.mantissa_bits | top_mantissa(f));
}

// The code of a finite value that the format represents exactly.
uint8_t code_of(const NumberFormat& f, double value) {
  const int lowest = 1 - f.bias;
  const int exponent = value == 0 ? lowest : std::max(std::ilogb(value), lowest);
  const int units = static_cast<int>(std::ldexp(value, f.mantissa_bits - exponent));
  const int hidden = 1 << f.mantissa_bits;
  if (units < hidden) return static_cast<uint8_t>(units);  // subnormal
  return static_cast<uint8_t>((exponent + f.bias) << f.mantissa_bits | (units - hidden));
}

uint8_t beyond(const NumberFormat& f, Overflow overflow) {
  if (overflow == Overflow::kSaturate || f.special == Special::kNone) return code_of(f, f.largest());
  if (f.special == Special::kIeee) return static_cast<uint8_t>(top_exponent(f) << f.mantissa_bits);
  return nan_code(f);
}

// The nearest power of two; ties go up, since of the significands 1 and 2 the latter is even.
uint8_t encode_scale(const NumberFormat& f, float x, Overflow overflow) {
  if (!(x >= 0)) return nan_code(f);
  if (std::isinf(x)) return overflow == Overflow::kSaturate ? static_cast<uint8_t>(top_exponent(f) - 1) : nan_code(f);
  if (x == 0) return 0;
  int exponent = std::ilogb(x);
  const double share = std::ldexp(static_cast<double>(x), -exponent);  // 1 to 2
  if (share >= 1.5) ++exponent;
  const int code = std::max(exponent + f.bias, 0), last = top_exponent(f) - 1;
  if (code > last && overflow == Overflow::kPropagate) return nan_code(f);
  return static_cast<uint8_t>(std::min(code, last));
}

}  // namespace

double NumberFormat::largest() const {
  const bool top_is_special = special == Special::kIeee;
  const int exponent = top_exponent(*this) - (top_is_special ? 1 : 0);
  if (special == Special::kUnsignedNan) return magnitude(*this, exponent - 1, 0);
  return magnitude(*this, exponent, top_mantissa(*this) - (special == Special::kNan ? 1 : 0));
}
double NumberFormat::smallest_normal() const {
  return special == Special::kUnsignedNan ? magnitude(*this, 0, 0) : magnitude(*this, 1, 0);
}
double NumberFormat::smallest() const {
  return special == Special::kUnsignedNan ? magnitude(*this, 0, 0) : magnitude(*this, 0, 1);
}

std::span<const NumberFormat> number_formats() { return kFormats; }

const NumberFormat& find_number_format(const std::string& name) {
  return named_row(kFormats, name,
                   {.where = "number format",
                    .what = "there is no such format",
                    .want = join(row_names(kFormats), ", "),
                    .fix = "use one of them"});
}

double decode(const NumberFormat& f, uint8_t code) {
  const int mantissa = code & top_mantissa(f), exponent = (code >> f.mantissa_bits) & top_exponent(f);
  const bool negative = f.special != Special::kUnsignedNan && (code >> (f.bits() - 1)) != 0;
  const double value = magnitude(f, exponent, mantissa);
  return negative ? -value : value;
}

uint8_t encode(const NumberFormat& f, float x, Overflow overflow) {
  if (f.special == Special::kUnsignedNan) return encode_scale(f, x, overflow);
  const auto sign = static_cast<uint8_t>(std::signbit(x) ? 1 << (f.bits() - 1) : 0);
  if (std::isnan(x)) return sign | (f.special == Special::kNone ? code_of(f, f.largest()) : nan_code(f));
  const double a = std::abs(static_cast<double>(x));
  if (std::isinf(a)) return sign | beyond(f, overflow);
  const int exponent = a == 0 ? 1 - f.bias : std::max(std::ilogb(a), 1 - f.bias);
  // Round in units of the last place: exact, since a float has fewer bits than a double; nearbyint() rounds ties to
  // even.
  const double rounded =
      std::ldexp(std::nearbyint(std::ldexp(a, f.mantissa_bits - exponent)), exponent - f.mantissa_bits);
  return sign | (rounded > f.largest() ? beyond(f, overflow) : code_of(f, rounded));
}

}  // namespace ranklab
