// Every code of the formats, both ways, against c10's float8 types and the OCP tables; ties, subnormals, overflow.
#include "core/precision/number_format.h"

#include <c10/util/Float8_e4m3fn.h>
#include <c10/util/Float8_e5m2.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <set>

#include "core/base/error.h"
#include "core/base/numbers/philox.h"
#include "core/precision/quantization_error.h"
#include "tests/precision/special_numbers.h"

namespace ranklab {
namespace {

// c10's value of a code and code of a value.
template <typename T>
struct Library {
  static float decoded(uint8_t code) { return static_cast<float>(T(code, T::from_bits())); }
  static uint8_t encoded(float x) { return T(x).x; }
};

// All codes, their neighbours, and the middles between codes with the floats next to them.
std::set<float> interesting(const NumberFormat& f) {
  std::set<float> all = {0.0f, -0.0f, kInfinity, -kInfinity, 1e-30f, -1e-30f, 1e30f, 3.4e38f};
  std::vector<double> values;
  for (int code = 0; code < f.codes(); ++code) values.push_back(decode(f, static_cast<uint8_t>(code)));
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    const bool has_next = i + 1 < values.size() && std::isfinite(values[i + 1]);
    for (const double x : {values[i], has_next ? (values[i] + values[i + 1]) / 2 : values[i] * 1.04}) {
      const auto exact = static_cast<float>(x);
      all.insert(exact);
      all.insert(std::nextafter(exact, kInfinity));
      all.insert(std::nextafter(exact, -kInfinity));
    }
  }
  const RandomStream stream(1, RandomPurpose::kTest, "floats");
  for (uint64_t i = 0; i < 20000; ++i) {
    const auto x = std::bit_cast<float>(stream.bits(i));
    if (x == x) all.insert(x);
  }
  return all;
}

template <typename T>
void expect_the_librarys(const std::string& name) {
  const NumberFormat& f = find_number_format(name);
  ASSERT_EQ(f.codes(), 256);
  for (int code = 0; code < 256; ++code) {
    const double got = decode(f, static_cast<uint8_t>(code));
    const float want = Library<T>::decoded(static_cast<uint8_t>(code));
    EXPECT_TRUE(got == want || (std::isnan(got) && std::isnan(want))) << code << ": " << got << ", " << want;
    EXPECT_EQ(std::signbit(got), std::signbit(want)) << code;
    // Back to the same code, NaN to a NaN.
    const uint8_t back = encode(f, static_cast<float>(got), Overflow::kPropagate);
    EXPECT_TRUE(back == code || std::isnan(got)) << code << " came back as " << int(back);
    EXPECT_EQ(std::isnan(decode(f, back)), std::isnan(got)) << code;
  }
  for (const float x : interesting(f))
    EXPECT_EQ(encode(f, x, Overflow::kPropagate), Library<T>::encoded(x)) << name << " of " << x;
}

TEST(NumberFormat, E4m3IsC10s) { expect_the_librarys<c10::Float8_e4m3fn>("e4m3"); }
TEST(NumberFormat, E5m2IsC10s) { expect_the_librarys<c10::Float8_e5m2>("e5m2"); }

TEST(NumberFormat, E2m1HasTheSixteenNumbersOfTheStandard) {
  const NumberFormat& f = find_number_format("e2m1");
  const double want[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  ASSERT_EQ(f.codes(), 16);
  for (int code = 0; code < 16; ++code) {
    const double value = decode(f, static_cast<uint8_t>(code));
    EXPECT_EQ(std::abs(value), want[code % 8]);
    EXPECT_EQ(std::signbit(value), code >= 8);
    EXPECT_EQ(encode(f, static_cast<float>(value)), code);
  }
  // Ties go to the even code: 0.25 -> 0, 0.75 -> 1, 1.25 -> 1, 1.75 -> 2, 2.5 -> 2, 3.5 -> 4, 5 -> 4.
  const std::pair<float, double> ties[] = {{0.25f, 0}, {0.75f, 1}, {1.25f, 1}, {1.75f, 2},
                                           {2.5f, 2},  {3.5f, 4},  {5, 4}};
  for (const auto& [x, nearest] : ties) {
    EXPECT_EQ(decode(f, encode(f, x)), nearest) << x;
    EXPECT_EQ(decode(f, encode(f, -x)), -nearest) << x;
  }
  for (const float x : {7.0f, 100.0f, kInfinity, std::numeric_limits<float>::quiet_NaN()})
    EXPECT_EQ(encode(f, x), 7) << x;
}

TEST(NumberFormat, E8m0IsPowersOfTwo) {
  const NumberFormat& f = find_number_format("e8m0");
  for (int code = 0; code < 255; ++code) {
    EXPECT_EQ(decode(f, static_cast<uint8_t>(code)), std::ldexp(1.0, code - 127));
    const float value = static_cast<float>(std::ldexp(1.0, code - 127));
    EXPECT_EQ(encode(f, value), code);
  }
  EXPECT_TRUE(std::isnan(decode(f, 255)));
  EXPECT_EQ(encode(f, 3.0f), 129) << "halfway between 2 and 4: up";
  EXPECT_EQ(encode(f, 1.5f), 128) << "halfway between 1 and 2: up";
  EXPECT_EQ(encode(f, 3.4e38f), 254);
  EXPECT_EQ(encode(f, 3.4e38f, Overflow::kPropagate), 255) << "beyond the largest";
  EXPECT_EQ(encode(f, 1.4f), 127);
  EXPECT_EQ(encode(f, -1.0f), 255);
  EXPECT_EQ(encode(f, kInfinity), 254);
  EXPECT_EQ(encode(f, kInfinity, Overflow::kPropagate), 255);
}

TEST(NumberFormat, LimitsAreThoseOfTheStandard) {
  const auto limits = [](const char* name) {
    const NumberFormat& f = find_number_format(name);
    return std::vector<double>{f.largest(), f.smallest_normal(), f.smallest()};
  };
  EXPECT_EQ(limits("e4m3"), (std::vector<double>{448, std::ldexp(1, -6), std::ldexp(1, -9)}));
  EXPECT_EQ(limits("e5m2"), (std::vector<double>{57344, std::ldexp(1, -14), std::ldexp(1, -16)}));
  EXPECT_EQ(limits("e2m1"), (std::vector<double>{6, 1, 0.5}));
  EXPECT_EQ(limits("e8m0")[0], std::ldexp(1, 127));
}

TEST(NumberFormat, SaturatesAtTheLargest) {
  for (const char* name : {"e4m3", "e5m2"}) {
    const NumberFormat& f = find_number_format(name);
    for (const float x : {static_cast<float>(f.largest()) * 1.5f, 1e30f, kInfinity}) {
      EXPECT_EQ(decode(f, encode(f, x)), f.largest()) << name;
      EXPECT_EQ(decode(f, encode(f, -x)), -f.largest()) << name;
      EXPECT_FALSE(std::isfinite(decode(f, encode(f, x, Overflow::kPropagate)))) << name;
    }
    EXPECT_TRUE(std::isnan(decode(f, encode(f, std::numeric_limits<float>::quiet_NaN()))));
  }
}

TEST(NumberFormat, AnUnknownOneIsRefusedWithTheNearest) {
  try {
    find_number_format("e4m33");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'e4m3'"), std::string::npos) << error.what();
  }
}

// Figures that others print, too: ecosystem knowledge of normal numbers in 8 bits.
TEST(QuantizationError, OfNormalNumbers) {
  std::vector<float> values(1 << 20);
  RandomStream(7, RandomPurpose::kTest, "normal").fill_normal(0, values);
  const auto share = [&](const char* name, double deviation, bool saturated) {
    std::vector<float> scaled = values;
    for (float& x : scaled) x = static_cast<float>(x * deviation);
    const QuantizationError e = measure_quantization(find_number_format(name), scaled);
    return 100 * (saturated ? e.saturated_share() : e.underflow_share());
  };
  EXPECT_NEAR(share("e4m3", 1e-3, false), 67.12, 0.2);
  EXPECT_NEAR(share("e5m2", 1e-3, false), 0.61, 0.05);
  EXPECT_NEAR(share("e4m3", 200, true), 2.51, 0.06);
}

TEST(QuantizationError, CountsBothZerosAndNoInputZero) {
  const std::vector<float> values = {0.0f, -0.0f, 1e-6f, -1e-6f, 1.0f, 500.0f, kInfinity};
  const QuantizationError e = measure_quantization(find_number_format("e4m3"), values);
  EXPECT_EQ(e.count, 6);
  EXPECT_EQ(e.nonzero, 4);
  EXPECT_EQ(e.underflow, 2);
  EXPECT_EQ(e.saturated, 1);
  EXPECT_NEAR(e.noise, 52.0 * 52.0, 1e-6);
  EXPECT_EQ(amax_scale(find_number_format("e4m3"), values), 448.0 / 500.0);
}

}  // namespace
}  // namespace ranklab
