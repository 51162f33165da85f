#include "core/precision/recipe.h"

namespace ranklab {

PrecisionRecipe fp32_recipe() {
  return {.name = "fp32",
          .summary = "everything in fp32: the reference for the others",
          .source = "IEEE 754",
          .compute = DType::kFloat32};
}

}  // namespace ranklab
