// Whether the parts of a precision recipe go together. Torch-free. Thread rule: pure.
#pragma once
#include "core/precision/recipe.h"

namespace ranklab {

// Throws kInvalidArgument naming `where`, the role and the field: blocks without a size, delayed scales of anything but
// a whole tensor, scales under a scale without blocks, sums in 14 bits of products that are not in FP8, ...
void check_recipe(const PrecisionRecipe& recipe, const std::string& where);

// Whether all three products have both sides in 8 bits.
bool all_fp8(const LinearPrecision& linear);

}  // namespace ranklab
