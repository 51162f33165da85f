#include "core/precision/recipe.h"

namespace ranklab {

PrecisionRecipe fp8_delayed_recipe() {
  const auto whole = [](const NumberFormat* format) {
    return TensorPrecision{.format = format, .scale = ScaleRule::kDelayedFp32};
  };
  return {.name = "fp8_delayed",
          .summary = "one scale per tensor, from the amax history of past steps; E4M3, gradients in E5M2",
          .source = "Transformer Engine, DelayedScaling; Micikevicius et al. 2022, arXiv 2209.05433",
          .linear = {.activation = whole(e4m3()), .weight = whole(e4m3()), .gradient = whole(e5m2())},
          .high_precision = {"head", "*.router"}};
}

}  // namespace ranklab
