#include "core/checkpoint/element_convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/error.h"

namespace ranklab {
namespace {

using ::testing::ElementsAre;

template <typename From, typename To>
To converted(TensorType from, From value, TensorType to) {
  const auto* first = reinterpret_cast<const std::byte*>(&value);
  const std::vector<std::byte> bytes = convert_elements(from, {first, sizeof value}, to);
  To result{};
  EXPECT_EQ(bytes.size(), sizeof result);
  std::memcpy(&result, bytes.data(), sizeof result);
  return result;
}

TEST(ElementConvert, Bf16RoundsToNearestEven) {
  EXPECT_EQ(to_bf16(1.0F), 0x3f80);
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x3f808000U)), 0x3f80);  // a tie, down to even
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x3f818000U)), 0x3f82);  // a tie, up to even
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x3f808001U)), 0x3f81);
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::max()), 0x7f80);  // infinity
  EXPECT_EQ(to_bf16(-INFINITY), 0xff80);
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x7f800001U)), 0x7fc0);  // a NaN whose upper half would be infinity
}

TEST(ElementConvert, Fp16RoundsToNearestEven) {
  EXPECT_EQ(to_fp16(1.0F), 0x3c00);
  EXPECT_EQ(to_fp16(-2.5F), 0xc100);
  EXPECT_EQ(to_fp16(65504.0F), 0x7bff);
  EXPECT_EQ(to_fp16(65519.99F), 0x7bff);
  EXPECT_EQ(to_fp16(65520.0F), 0x7c00);
  EXPECT_EQ(to_fp16(1.0F + 0x1p-11F), 0x3c00);      // a tie, down to even
  EXPECT_EQ(to_fp16(1.0F + 3 * 0x1p-11F), 0x3c02);  // a tie, up to even
  EXPECT_EQ(to_fp16(2.0F - 0x1p-12F), 0x4000);      // the carry reaches the exponent
  EXPECT_EQ(to_fp16(0x1p-14F - 0x1p-26F), 0x0400);  // ... and from a subnormal number
  EXPECT_EQ(to_fp16(0x1p-24F), 0x0001);
  EXPECT_EQ(to_fp16(0x1p-25F), 0x0000);
  EXPECT_EQ(to_fp16(-0x1.8p-25F), 0x8001);
  EXPECT_EQ(to_fp16(NAN) & 0x7fff, 0x7e00);
}

// Every number of 16 bits is itself again after fp32 and fp64.
TEST(ElementConvert, WiderTypesGiveBackTheBits) {
  for (const TensorType type : {TensorType::kBF16, TensorType::kF16}) {
    for (const TensorType wide : {TensorType::kF32, TensorType::kF64}) {
      for (uint32_t bits = 0; bits < 0x10000; ++bits) {
        const auto value = static_cast<uint16_t>(bits);
        if (std::isnan(element_value(type, reinterpret_cast<const std::byte*>(&value)))) continue;
        const auto* first = reinterpret_cast<const std::byte*>(&value);
        const auto wider = convert_elements(type, {first, sizeof value}, wide);
        const auto back = convert_elements(wide, wider, type);
        ASSERT_EQ(std::memcmp(back.data(), &value, sizeof value), 0) << bits;
      }
    }
  }
}

// Through fp32 this number would be rounded twice, to 1.
TEST(ElementConvert, Fp64IsRoundedOnce) {
  const double value = 1.0 + 0x1p-8 + 0x1p-40;
  EXPECT_EQ((converted<double, uint16_t>(TensorType::kF64, value, TensorType::kBF16)), 0x3f81);
  const double half = 1.0 + 0x1p-11 + 0x1p-40;
  EXPECT_EQ((converted<double, uint16_t>(TensorType::kF64, half, TensorType::kF16)), 0x3c01);
  EXPECT_EQ((converted<double, float>(TensorType::kF64, 0.1, TensorType::kF32)), 0.1F);
}

// fp64 on the way is the path of all other types; every upper half of fp32's bits, and lower halves around a tie.
TEST(ElementConvert, WholeModelsAreConvertedAsSingleNumbersAre) {
  std::vector<uint16_t> halves;
  std::vector<uint32_t> singles;
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    if ((bits & 0x7fffU) <= 0x7f80U) halves.push_back(static_cast<uint16_t>(bits));  // a NaN keeps its bits
    for (const uint32_t low : {0x0000U, 0x0001U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU})
      singles.push_back(bits << 16 | low);
  }
  const auto through_fp64 = [](TensorType from, std::span<const std::byte> bytes, TensorType to) {
    return convert_elements(TensorType::kF64, convert_elements(from, bytes, TensorType::kF64), to);
  };
  const auto narrow = std::as_bytes(std::span(halves)), wide = std::as_bytes(std::span(singles));
  EXPECT_EQ(convert_elements(TensorType::kBF16, narrow, TensorType::kF32),
            through_fp64(TensorType::kBF16, narrow, TensorType::kF32));
  EXPECT_EQ(convert_elements(TensorType::kF32, wide, TensorType::kBF16),
            through_fp64(TensorType::kF32, wide, TensorType::kBF16));
}

TEST(ElementConvert, IntegersAreNoWeights) {
  const std::vector<std::byte> bytes(8);
  EXPECT_THROW(convert_elements(TensorType::kI64, bytes, TensorType::kF32), Error);
  EXPECT_THROW(convert_elements(TensorType::kF32, bytes, TensorType::kF8E4M3), Error);
}

}  // namespace
}  // namespace ranklab
