#include "core/parallel/quantized/packed_rows.h"

#include <limits>

#include "core/parallel/quantized/device_operand.h"
#include "core/precision/scale_maker.h"
#include "core/precision/scaled_matrix.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

constexpr int kE8M0Nan = 255;
constexpr int kExponentShift = kFloatMantissaBits;
constexpr int kSmallestScaleBits = 1 << (kExponentShift - 1);  // 2^-127, an fp32 subnormal
constexpr int kNibble = 4, kNibbleSign = 8, kNibbleMask = 7;

// A power of two as its exponent, one byte; NaN as 255.
at::Tensor e8m0_of(const at::Tensor& scales) {
  return scales.view(at::kInt).bitwise_right_shift(kExponentShift).to(at::kByte);
}
at::Tensor scales_of(const at::Tensor& e8m0) {
  const at::Tensor exponents = e8m0.to(at::kInt);
  at::Tensor scales = exponents.bitwise_left_shift(kExponentShift);
  scales = scales.masked_fill(exponents == 0, kSmallestScaleBits).view(at::kFloat);
  return scales.masked_fill(exponents == kE8M0Nan, std::numeric_limits<float>::quiet_NaN());
}

// E2M1's magnitudes 0, 0.5, 1, 1.5, 2, 3, 4, 6 are its codes 0 to 7.
at::Tensor e2m1_of(const at::Tensor& numbers) {
  const at::Tensor halves = numbers.abs().masked_fill(numbers != numbers, 0) * 2;
  const at::Tensor codes = halves.clamp_max(4) + (halves > 4) + (halves > 6) + (halves > 8);
  return (codes + (numbers.view(at::kInt) < 0) * kNibbleSign).to(at::kByte);
}
at::Tensor numbers_of_e2m1(const at::Tensor& codes) {
  const at::Tensor magnitude = codes.bitwise_and(kNibbleMask).to(at::kFloat);
  const at::Tensor numbers = magnitude.clamp_max(4) / 2 + (magnitude - 4).clamp_min(0) + (magnitude > 6).to(at::kFloat);
  return at::where(codes >= kNibbleSign, -numbers, numbers);
}

// Two codes a byte, the first in the low half.
at::Tensor paired(const at::Tensor& codes) {
  const at::Tensor even = at::constant_pad_nd(codes, {0, codes.size(1) % 2});
  return even.slice(1, 0, {}, 2).bitwise_or(even.slice(1, 1, {}, 2).bitwise_left_shift(kNibble));
}
at::Tensor parted(const at::Tensor& bytes, int64_t columns) {
  const at::Tensor both = at::stack({bytes.bitwise_and((1 << kNibble) - 1), bytes.bitwise_right_shift(kNibble)}, 2);
  return both.view({bytes.size(0), -1}).narrow(1, 0, columns);
}

bool fills_bytes(const TensorPrecision& precision) { return precision.format->bits() == kCodeBits; }

}  // namespace

at::Tensor packed_rows(const at::Tensor& rows_NC, const TensorPrecision& precision, const DeviceRounding& device) {
  const NoCostScope free;
  const int64_t rows = rows_NC.size(0), columns = rows_NC.size(1);
  const GroupShape groups = group_shape(precision, Along::kColumns, rows, columns);
  const RoundedOperand rounded = round_on_device(rows_NC, {.precision = precision}, device);
  const at::Tensor scales = rounded.device_scales.view({rows, -1});
  const at::Tensor units = values_of(rounded) / scales_for(scales, groups, rows, columns);
  const at::Tensor codes =
      fills_bytes(precision) ? units.to(code_type(*precision.format)).view(at::kByte) : paired(e2m1_of(units));
  return at::cat({codes, e8m0_of(scales)}, 1);
}

at::Tensor unpacked_rows(const at::Tensor& bytes_NW, const TensorPrecision& precision, int64_t columns) {
  const NoCostScope free;
  const int64_t rows = bytes_NW.size(0);
  const GroupShape groups = group_shape(precision, Along::kColumns, rows, columns);
  const PackedLayout layout = packed_layout(precision, Along::kColumns, rows, columns);
  const at::Tensor codes = bytes_NW.narrow(1, 0, layout.code_bytes);
  const at::Tensor scales = scales_of(bytes_NW.narrow(1, layout.code_bytes, layout.row_scale_bytes));
  const at::Tensor units = fills_bytes(precision) ? codes.contiguous().view(code_type(*precision.format)).to(at::kFloat)
                                                  : numbers_of_e2m1(parted(codes, columns));
  return units * scales_for(scales, groups, rows, columns);
}

}  // namespace ranklab
