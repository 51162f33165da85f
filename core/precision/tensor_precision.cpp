#include "core/precision/tensor_precision.h"

#include <array>

namespace ranklab {

std::string_view name(Granularity granularity) {
  constexpr std::array<std::string_view, 4> kNames = {"tensor", "row", "tile", "block"};
  return kNames[static_cast<size_t>(granularity)];
}

std::string_view name(ScaleRule rule) {
  constexpr std::array<std::string_view, 6> kNames = {"fp32", "power_of_two", "e8m0", "e8m0_up", "e4m3", "delayed"};
  return kNames[static_cast<size_t>(rule)];
}

std::string_view name(Rounding rounding) { return rounding == Rounding::kNearest ? "nearest" : "stochastic"; }

bool has_scaled_groups(const TensorPrecision& precision) {
  const bool groups = precision.granularity == Granularity::kTile || precision.granularity == Granularity::kBlock;
  return groups && precision.block == kScaledGroup && precision.scale != ScaleRule::kE4M3;
}

std::string_view name(SumPrecision sum) {
  constexpr std::array<std::string_view, 3> kNames = {"fp32", "hopper", "hopper_promoted"};
  return kNames[static_cast<size_t>(sum)];
}

bool scales_are_delayed(const LinearPrecision& linear) {
  const auto delayed = [](const TensorPrecision& t) { return t.quantized() && t.scale == ScaleRule::kDelayedFp32; };
  return delayed(linear.activation) || delayed(linear.weight) || delayed(linear.gradient);
}

}  // namespace ranklab
