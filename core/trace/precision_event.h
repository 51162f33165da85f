// What quantization does to the tensors of a step, as instants named "precision ROLE MODULE" with an array of numbers:
// ROLE is activation, weight or gradient, MODULE a linear layer ("layers.3.mlp.gate_up"). Of sampled steps only; of
// several microbatches the first. With tensor parallelism of this rank's part of the tensor. Torch-free. Thread rule:
// constants.
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

// Places in the array. Behind the histogram come the scales of a part of the groups: first the rows and columns of that
// part, then rows x columns numbers (the top left corner of the grid, at most kShownScaleRows x kShownScaleCols).
enum PrecisionNumber : size_t {
  kPrecisionFormatBits,  // exponent bits x 16 + mantissa bits of the format: 4 x 16 + 3 of E4M3
  kPrecisionGroupRows,   // numbers that share a scale: rows x columns of the tensor
  kPrecisionGroupCols,
  kPrecisionRows,  // of the tensor
  kPrecisionCols,
  kPrecisionCount,      // elements
  kPrecisionNonzero,    // not zero before
  kPrecisionUnderflow,  // of these zero after, of either sign
  kPrecisionSaturated,  // beyond the largest number before rounding
  kPrecisionSignal,     // sums of squares: of the numbers, of the errors
  kPrecisionNoise,
  kPrecisionAmax,
  kPrecisionScaleMin,  // of the groups' scales (what codes are multiplied with), those of zeros left out
  kPrecisionScaleMax,
  kPrecisionScaleMean,
  kPrecisionScaleStd,
  kPrecisionHistogram,  // kPrecisionBins counts of nonzero numbers by floor(log2 |x|), first bin kPrecisionFirstBin
};
constexpr int kPrecisionFirstBin = -40;  // smaller ones are counted here
constexpr size_t kPrecisionBins = 64;    // the last one counts 2^23 and above
constexpr size_t kPrecisionScaleRows = kPrecisionHistogram + kPrecisionBins;
constexpr size_t kPrecisionScaleCols = kPrecisionScaleRows + 1;
constexpr size_t kPrecisionScales = kPrecisionScaleCols + 1;
constexpr size_t kShownScaleRows = 32, kShownScaleCols = 32;

}  // namespace ranklab
