#include "core/precision/recipe.h"

namespace ranklab {

PrecisionRecipe fp8_rowwise_recipe() {
  const TensorPrecision rows{.format = e4m3(), .granularity = Granularity::kRow, .scale = ScaleRule::kPowerOfTwo};
  return {.name = "fp8_rowwise",
          .summary = "one power-of-two scale per row along the contracted dimension; E4M3 everywhere",
          .source = "torchao float8, the rowwise recipe; Micikevicius et al. 2022, arXiv 2209.05433",
          .linear = {.activation = rows, .weight = rows, .gradient = rows},
          .high_precision = {"head", "*.router"}};
}

}  // namespace ranklab
