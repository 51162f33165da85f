// The effect of quantization on the tensors of a step, as instants named "precision ROLE MODULE" with an array of
// numbers: ROLE is activation, weight or gradient, MODULE a linear layer ("layers.3.mlp.gate_up"). Recorded in sampled
// steps only, for the first microbatch; with tensor parallelism, for this rank's shard of the tensor. Torch-free.
// Thread rule: constants.
#pragma once
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace ranklab {

constexpr std::string_view kPrecisionEvent = "precision ";

enum class TensorRole { kActivation, kWeight, kGradient };
constexpr std::array<std::string_view, 3> kTensorRoles = {"activation", "weight", "gradient"};

inline std::string precision_event_name(TensorRole role, std::string_view module) {
  return std::string(kPrecisionEvent) + std::string(kTensorRoles[static_cast<size_t>(role)]) + " " +
         std::string(module);
}

// Indices into the array. The histogram is followed by the scales of some of the groups: the number of rows and of
// columns of that part, then rows x columns scales (the top left of the grid, at most kShownScaleRows x
// kShownScaleCols).
enum PrecisionNumber : size_t {
  kPrecisionFormatBits,  // exponent bits x 16 + mantissa bits of the format: 4 x 16 + 3 of E4M3
  kPrecisionGroupRows,   // size of a group that shares a scale, in rows and columns of the tensor
  kPrecisionGroupCols,
  kPrecisionRows,  // size of the tensor
  kPrecisionCols,
  kPrecisionCount,      // elements
  kPrecisionNonzero,    // nonzero before quantization
  kPrecisionUnderflow,  // of the nonzero elements, those that are zero after it (of either sign)
  kPrecisionSaturated,  // beyond the format's largest number, before rounding
  kPrecisionSignal,     // sums of squares of the values and of the errors
  kPrecisionNoise,
  kPrecisionAmax,
  kPrecisionScaleMin,  // of the groups' scales (the factors by which codes are multiplied), without all-zero groups
  kPrecisionScaleMax,
  kPrecisionScaleMean,
  kPrecisionScaleStd,
  kPrecisionHistogram,  // kPrecisionBins counts of nonzero numbers by floor(log2 |x|), first bin kPrecisionFirstBin
};
constexpr int kPrecisionFirstBin = -40;  // smaller values are counted in the first bin
constexpr size_t kPrecisionBins = 64;    // the last bin counts 2^23 and above
constexpr size_t kPrecisionScaleRows = kPrecisionHistogram + kPrecisionBins;
constexpr size_t kPrecisionScaleCols = kPrecisionScaleRows + 1;
constexpr size_t kPrecisionScales = kPrecisionScaleCols + 1;
constexpr size_t kShownScaleRows = 32, kShownScaleCols = 32;

}  // namespace ranklab
