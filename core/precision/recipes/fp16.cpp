#include "core/precision/recipe.h"

namespace ranklab {

PrecisionRecipe fp16_recipe() {
  return {.name = "fp16",
          .summary = "fp16 GEMMs and activations, fp32 master weights, dynamic loss scaling",
          .source = "Micikevicius et al. 2018, arXiv 1710.03740",
          .compute = DType::kFloat16,
          .main_grads = DType::kFloat16};
}

}  // namespace ranklab
