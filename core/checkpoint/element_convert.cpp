#include "core/checkpoint/element_convert.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "core/base/error.h"

namespace ranklab {
namespace {

template <typename T>
void store(std::vector<std::byte>& out, size_t index, T value) {
  std::memcpy(out.data() + index * sizeof value, &value, sizeof value);
}

template <typename From, typename To, typename Convert>
std::vector<std::byte> each(std::span<const std::byte> bytes, const Convert& convert) {
  std::vector<std::byte> out(bytes.size() / sizeof(From) * sizeof(To));
  for (size_t i = 0; i < bytes.size() / sizeof(From); ++i) {
    From value{};
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    store<To>(out, i, convert(value));
  }
  return out;
}

// The bits of an fp32 number.
uint32_t from_bf16(uint16_t bits) { return static_cast<uint32_t>(bits) << 16; }

// Rounding a double to fp32 and then to 16 bits may round twice; rounding it to odd first avoids that.
float round_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  if (std::isnan(value) || std::isinf(nearest) || static_cast<double>(nearest) == value) return nearest;
  const auto bits = std::bit_cast<uint32_t>(nearest);
  if ((bits & 1U) != 0) return nearest;
  const bool up = std::fabs(static_cast<double>(nearest)) < std::fabs(value);
  return std::bit_cast<float>(up ? bits + 1 : bits - 1);
}

}  // namespace

bool is_float_target(TensorType type) {
  return type == TensorType::kF64 || type == TensorType::kF32 || type == TensorType::kBF16 || type == TensorType::kF16;
}

uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40U);  // quiet, with its sign
  return static_cast<uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

uint16_t to_fp16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000U);
  if (std::isnan(value)) return static_cast<uint16_t>(sign | 0x7e00U);
  const double size = std::fabs(static_cast<double>(value));
  if (size >= 65520.0) return static_cast<uint16_t>(sign | 0x7c00U);  // halfway above the largest number, 65504
  // In units in the last place (ULP): nearbyint() rounds ties to even, and a carry propagates into the exponent.
  if (size < 0x1p-14) return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(size * 0x1p24)));
  const int exponent = std::ilogb(size);
  const auto mantissa = static_cast<uint32_t>(std::nearbyint(std::ldexp(size, 10 - exponent)));  // 1024 to 2048
  return static_cast<uint16_t>(sign | ((static_cast<uint32_t>(exponent + 14) << 10) + mantissa));
}

std::vector<std::byte> convert_elements(TensorType from, std::span<const std::byte> bytes, TensorType to) {
  RANKLAB_CHECK(is_float(from) && is_float_target(to), ErrorKind::kInvalidArgument, .where = "checkpoint",
                .what = "elements of this type cannot be converted",
                .got = std::string(name(from)) + " to " + std::string(name(to)),
                .want = "floats, to F64, F32, BF16 or F16");
  if (from == to) return {bytes.begin(), bytes.end()};
  // The conversions that are common for whole models.
  if (from == TensorType::kBF16 && to == TensorType::kF32) return each<uint16_t, uint32_t>(bytes, from_bf16);
  if (from == TensorType::kF32 && to == TensorType::kBF16) return each<float, uint16_t>(bytes, to_bf16);
  const size_t width = size_bytes(from), count = bytes.size() / width;
  std::vector<std::byte> out(count * size_bytes(to));
  for (size_t i = 0; i < count; ++i) {
    const double value = element_value(from, bytes.data() + i * width);
    if (to == TensorType::kF64) store(out, i, value);
    if (to == TensorType::kF32) store(out, i, static_cast<float>(value));
    if (to == TensorType::kBF16) store(out, i, to_bf16(round_to_odd(value)));
    if (to == TensorType::kF16) store(out, i, to_fp16(round_to_odd(value)));
  }
  return out;
}

}  // namespace ranklab
