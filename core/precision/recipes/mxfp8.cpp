#include "core/precision/recipe.h"

namespace ranklab {

PrecisionRecipe mxfp8_recipe() {
  constexpr int64_t kBlock = 32;
  const TensorPrecision micro{
      .format = e4m3(), .granularity = Granularity::kTile, .block = kBlock, .scale = ScaleRule::kE8M0Up};
  return {.name = "mxfp8",
          .summary = "E4M3 in blocks of 32 with one power-of-two scale each, rounded up so that nothing saturates",
          .source = "OCP MX v1.0, arXiv 2310.10537; the rounding of scales: Mishra et al. 2025, arXiv 2506.08027",
          .linear = {.activation = micro, .weight = micro, .gradient = micro},
          .high_precision = {"head", "*.router"},
          .dispatch = micro};
}

}  // namespace ranklab
