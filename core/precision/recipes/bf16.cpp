#include "core/precision/recipe.h"

namespace ranklab {

PrecisionRecipe bf16_recipe() {
  return {.name = "bf16",
          .summary = "bf16 GEMMs and activations, fp32 master weights and moments",
          .source = "Kalamkar et al. 2019, arXiv 1905.12322",
          .main_grads = DType::kBFloat16};
}

}  // namespace ranklab
