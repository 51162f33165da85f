// Resolves a run's precision settings: merges modes and recipe into one policy and refuses contradictions. Torch-free.
// Thread rule: pure functions, except for reading a recipe file.
#pragma once
#include <memory>
#include <string>

#include "core/config/precision_settings.h"
#include "core/config/train_config.h"
#include "core/precision/precision_policy.h"

namespace ranklab {

// Checks the precision settings and merges mode and recipe: afterwards `bf16`, `precision.fp16` and `params_dtype` give
// the dtype of the parameters, and `precision.recipe` what --fp8 or --fp4 requested. Idempotent. Throws
// kInvalidArgument. RETURNS: the settings as one recipe and one list of exceptions.
PrecisionSettings settle_precision(TrainConfig& config);

// The policy of the run's linear modules; null when no setting needs one, because every GEMM is in the dtype of the
// parameters.
std::shared_ptr<const PrecisionPolicy> precision_policy(PrecisionSettings settings, const ModelConfig& model);

// The same, but never null: a run without settings gets a policy of unquantized GEMMs.
PrecisionPolicy explain_precision(const TrainConfig& config);

// Names the cause if a run computes in fewer bits than fp32: the recipe that quantizes, or the dtype of the parameters
// or of some GEMMs. "" if it does not.
std::string low_precision_cause(const RunPlan& plan);

}  // namespace ranklab
