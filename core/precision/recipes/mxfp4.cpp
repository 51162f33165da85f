#include "core/precision/recipe.h"

namespace ranklab {

PrecisionRecipe mxfp4_recipe() {
  constexpr int64_t kBlock = 32;
  const TensorPrecision micro{
      .format = e2m1(), .granularity = Granularity::kTile, .block = kBlock, .scale = ScaleRule::kE8M0};
  TensorPrecision gradient = micro;
  gradient.rounding = Rounding::kStochastic;
  return {.name = "mxfp4",
          .summary =
              "E2M1 in blocks of 32 with a power-of-two scale each; gradients rounded stochastically, a random "
              "Hadamard transform for weight gradients",
          .source = "OCP MX v1.0, arXiv 2310.10537; Tseng et al. 2025, arXiv 2502.20586",
          .linear = {.activation = micro, .weight = micro, .gradient = gradient, .hadamard = true},
          .high_precision = {"head", "*.router"}};
}

}  // namespace ranklab
