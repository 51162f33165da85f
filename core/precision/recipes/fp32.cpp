#include "core/precision/recipe.h"

namespace ranklab {

PrecisionRecipe fp32_recipe() {
  return {.name = "fp32",
          .summary = "all in fp32: what the others are compared with",
          .source = "IEEE 754",
          .compute = DType::kFloat32};
}

}  // namespace ranklab
