#include "core/runtime/precision_choice.h"

#include "core/runtime/linear_modules.h"
#include "core/runtime/precision_settings.h"

namespace ranklab {

void settle_precision(TrainConfig& config) {
  const PrecisionSettings settings = precision_settings(config);
  if (!settings.named) return;
  if (config.precision.recipe.empty()) config.precision.recipe = settings.recipe.name;
  config.precision.fp8 = config.precision.fp4 = false;
  config.bf16 = settings.recipe.compute == DType::kBFloat16;
  config.precision.fp16 = settings.recipe.compute == DType::kFloat16;
}

std::shared_ptr<const PrecisionPolicy> precision_policy(const RunPlan& plan) {
  PrecisionSettings settings = precision_settings(plan.config);
  if (!settings.decides()) return nullptr;
  return std::make_shared<PrecisionPolicy>(std::move(settings.recipe), settings.rules,
                                           linear_modules(plan.config.model));
}

PrecisionPolicy explain_precision(const TrainConfig& config) {
  PrecisionSettings settings = precision_settings(config);
  return PrecisionPolicy(std::move(settings.recipe), settings.rules, linear_modules(config.model));
}

}  // namespace ranklab
