// The precision settings of a run as one recipe and one list of exceptions: modes name a recipe, flags change single
// fields of it. Torch-free. Thread rule: pure functions, but for reading a recipe's file.
#pragma once
#include "core/config/train_config.h"
#include "core/precision/precision_policy.h"

namespace ranklab {

struct PrecisionSettings {
  PrecisionRecipe recipe;  // with what flags changed; without any setting: the type of the parameters for all
  PrecisionRules rules;
  bool named = false;  // a mode of few bits or --precision-recipe asked for it

  // Whether anything differs from a run without settings.
  bool decides() const {
    return named || recipe.linear.quantized() || !rules.compute_rules.empty() || !rules.compute_overrides.empty();
  }
};

// --params-dtype bf16 and fp16 are other words for --bf16 and --fp16; beside FP8 and FP4 recipes, which have bf16
// parameters, the first says nothing new. Throws kInvalidArgument where another mode is set.
void take_params_dtype(TrainConfig& config);

// Throws kInvalidArgument: modes that exclude each other, a recipe that contradicts the mode, flags that the recipe has
// no place for, lists that cannot be read.
PrecisionSettings precision_settings(const TrainConfig& config);

}  // namespace ranklab
