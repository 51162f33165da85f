#include "core/precision/recipe.h"

namespace ranklab {

PrecisionRecipe fp8_current_recipe() {
  return {.name = "fp8_current",
          .summary = "one scale per tensor, from its current amax; E4M3, gradients in E5M2",
          .source = "Transformer Engine, Float8CurrentScaling; Micikevicius et al. 2022, arXiv 2209.05433",
          .linear = {.activation = {.format = e4m3()}, .weight = {.format = e4m3()}, .gradient = {.format = e5m2()}},
          .high_precision = {"head", "*.router"}};
}

}  // namespace ranklab
