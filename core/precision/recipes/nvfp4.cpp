#include "core/precision/recipe.h"

namespace ranklab {

// Weights are scaled in square blocks, so that forward and backward see the same numbers.
PrecisionRecipe nvfp4_recipe() {
  constexpr int64_t kBlock = 16;
  const TensorPrecision tile{
      .format = e2m1(), .granularity = Granularity::kTile, .block = kBlock, .scale = ScaleRule::kE4M3};
  TensorPrecision weight = tile, gradient = tile;
  weight.granularity = Granularity::kBlock;
  gradient.rounding = Rounding::kStochastic;
  return {.name = "nvfp4",
          .summary =
              "E2M1 in blocks of 16 with E4M3 scales under one fp32 scale; gradients rounded stochastically, a "
              "random Hadamard transform for weight gradients",
          .source = "NVIDIA 2025, Pretraining LLMs with NVFP4, arXiv 2509.25149",
          .linear = {.activation = tile, .weight = weight, .gradient = gradient, .hadamard = true},
          .high_precision = {"head", "*.router"}};
}

}  // namespace ranklab
