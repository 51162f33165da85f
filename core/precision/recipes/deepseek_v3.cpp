#include "core/precision/recipe.h"

namespace ranklab {

// Combine stays in bf16 (DeepEP). The paper does not round stochastically.
PrecisionRecipe deepseek_v3_recipe() {
  constexpr int64_t kBlock = 128;
  const TensorPrecision tile{.format = e4m3(), .granularity = Granularity::kTile, .block = kBlock};
  const TensorPrecision block{.format = e4m3(), .granularity = Granularity::kBlock, .block = kBlock};
  TensorPrecision dispatch = tile;
  dispatch.scale = ScaleRule::kPowerOfTwo;
  return {.name = "deepseek_v3",
          .summary =
              "E4M3 everywhere: activations and gradients 1 x 128, weights 128 x 128; bf16 moments; tokens "
              "travel to their experts in FP8",
          .source = "DeepSeek-V3, arXiv 2412.19437, section 3.3",
          .linear = {.activation = tile,
                     .weight = block,
                     .gradient = tile,
                     .requantize_activation = true,
                     .sum = SumPrecision::kFp32},
          .high_precision = {"head", "*.router"},
          .exp_avg = DType::kBFloat16,
          .exp_avg_sq = DType::kBFloat16,
          .dispatch = dispatch};
}

}  // namespace ranklab
