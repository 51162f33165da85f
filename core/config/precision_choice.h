// What the settings of precision make of a run: modes and recipe as one, what contradicts is refused. Torch-free.
// Thread rule: pure functions, but for reading a recipe's file.
#pragma once
#include <memory>

#include "core/config/precision_settings.h"
#include "core/config/train_config.h"
#include "core/precision/precision_policy.h"

namespace ranklab {

// Checks the precision settings and makes one of modes and recipe: afterwards `bf16`, `precision.fp16` and
// `params_dtype` say the type of the parameters, and `precision.recipe` what --fp8 or --fp4 asked for. Doing it twice
// changes nothing. Throws kInvalidArgument. RETURNS: the settings as one recipe and one list of exceptions.
PrecisionSettings settle_precision(TrainConfig& config);

// The policy of the run's linear modules; null when nothing asks for one: every product is in the type of the
// parameters.
std::shared_ptr<const PrecisionPolicy> precision_policy(PrecisionSettings settings, const ModelConfig& model);

// The same, and never null: of a run without settings one that says so.
PrecisionPolicy explain_precision(const TrainConfig& config);

}  // namespace ranklab
