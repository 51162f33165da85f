// The precision settings of a run as one recipe and one list of exceptions: a mode names a recipe, flags change single
// fields of it. Torch-free. Thread rule: pure functions, except for reading a recipe file.
#pragma once
#include "core/config/train_config.h"
#include "core/precision/precision_policy.h"

namespace ranklab {

struct PrecisionSettings {
  PrecisionRecipe recipe;  // with the flags applied; without any setting: everything in the parameters' dtype
  PrecisionRules rules;
  bool named = false;  // a low-precision mode or --precision-recipe requested it

  // True when anything differs from a run without settings.
  bool decides() const {
    return named || recipe.linear.quantized() || !rules.compute_rules.empty() || !rules.compute_overrides.empty();
  }
};

// --params-dtype bf16 and fp16 are aliases of --bf16 and --fp16. With FP8 and FP4 recipes, whose parameters are bf16,
// --params-dtype bf16 is redundant. Throws kInvalidArgument where another mode is set.
void take_params_dtype(TrainConfig& config);

// Throws kInvalidArgument: modes that exclude each other, a recipe that contradicts the mode, flags that do not apply
// to the recipe, lists that cannot be parsed.
PrecisionSettings precision_settings(const TrainConfig& config);

}  // namespace ranklab
