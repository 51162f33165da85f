#include "core/checkpoint/tensor_type.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/named_rows.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

struct Row {
  TensorType type;
  std::string_view name;
  uint64_t bytes;
  bool is_float;
};
constexpr std::array<Row, kTensorTypes> kRows = {{{TensorType::kBool, "BOOL", 1, false},
                                                  {TensorType::kU8, "U8", 1, false},
                                                  {TensorType::kI8, "I8", 1, false},
                                                  {TensorType::kF8E5M2, "F8_E5M2", 1, true},
                                                  {TensorType::kF8E4M3, "F8_E4M3", 1, true},
                                                  {TensorType::kI16, "I16", 2, false},
                                                  {TensorType::kU16, "U16", 2, false},
                                                  {TensorType::kF16, "F16", 2, true},
                                                  {TensorType::kBF16, "BF16", 2, true},
                                                  {TensorType::kI32, "I32", 4, false},
                                                  {TensorType::kU32, "U32", 4, false},
                                                  {TensorType::kF32, "F32", 4, true},
                                                  {TensorType::kF64, "F64", 8, true},
                                                  {TensorType::kI64, "I64", 8, false},
                                                  {TensorType::kU64, "U64", 8, false}}};

const Row& row(TensorType type) { return kRows[static_cast<size_t>(type)]; }

template <typename T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// A binary float with a hidden bit and subnormals. It has IEEE's infinities unless `finite_only`, where NaN is all
// ones.
double small_float(uint32_t bits, int exponent_bits, int mantissa_bits, bool finite_only) {
  const uint32_t mantissa = bits & ((1U << mantissa_bits) - 1), largest = (1U << exponent_bits) - 1;
  const uint32_t exponent = (bits >> mantissa_bits) & largest;
  const bool all_ones = mantissa == (1U << mantissa_bits) - 1;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  double value = 0;
  if (exponent == largest && (finite_only ? all_ones : mantissa != 0)) {
    return std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == largest && !finite_only) {
    value = std::numeric_limits<double>::infinity();
  } else if (exponent == 0) {
    value = std::ldexp(mantissa, 1 - bias - mantissa_bits);
  } else {
    value = std::ldexp(mantissa + (1U << mantissa_bits), static_cast<int>(exponent) - bias - mantissa_bits);
  }
  return (bits >> (exponent_bits + mantissa_bits)) != 0 ? -value : value;
}

}  // namespace

uint64_t size_bytes(TensorType type) { return row(type).bytes; }
std::string_view name(TensorType type) { return row(type).name; }
bool is_float(TensorType type) { return row(type).is_float; }

bool find_tensor_type(std::string_view text, TensorType& type) {
  for (const Row& r : kRows) {
    if (r.name != text) continue;
    type = r.type;
    return true;
  }
  return false;
}

std::string tensor_type_names() { return join(row_names(kRows), ", "); }

double element_value(TensorType type, const std::byte* at) {
  switch (type) {
    case TensorType::kBool:
    case TensorType::kU8:
      return load<uint8_t>(at);
    case TensorType::kI8:
      return load<int8_t>(at);
    case TensorType::kF8E5M2:
      return small_float(load<uint8_t>(at), 5, 2, false);
    case TensorType::kF8E4M3:
      return small_float(load<uint8_t>(at), 4, 3, true);
    case TensorType::kI16:
      return load<int16_t>(at);
    case TensorType::kU16:
      return load<uint16_t>(at);
    case TensorType::kF16:
      return small_float(load<uint16_t>(at), 5, 10, false);
    case TensorType::kBF16:
      return small_float(load<uint16_t>(at), 8, 7, false);
    case TensorType::kI32:
      return load<int32_t>(at);
    case TensorType::kU32:
      return load<uint32_t>(at);
    case TensorType::kF32:
      return load<float>(at);
    case TensorType::kF64:
      return load<double>(at);
    case TensorType::kI64:
      return static_cast<double>(load<int64_t>(at));
    case TensorType::kU64:
      return static_cast<double>(load<uint64_t>(at));
  }
  return 0;
}

}  // namespace ranklab
