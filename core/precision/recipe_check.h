// Checks that the parts of a precision recipe are compatible. Torch-free. Thread rule: pure.
#pragma once
#include "core/precision/recipe.h"

namespace ranklab {

// Throws kInvalidArgument naming `where`, the role and the field for, among others: blocks without a size, delayed
// scales for anything but a whole tensor, two-level scales without blocks, 14-bit sums of products that are not in FP8.
void check_recipe(const PrecisionRecipe& recipe, const std::string& where);

// Whether both operands of all three products have 8 bits.
bool all_fp8(const LinearPrecision& linear);

}  // namespace ranklab
