#include "core/config/precision_choice.h"

#include <algorithm>

#include "core/config/linear_modules.h"

namespace ranklab {

PrecisionSettings settle_precision(TrainConfig& config) {
  take_params_dtype(config);
  PrecisionSettings settings = precision_settings(config);
  if (!settings.named) return settings;
  if (config.precision.recipe.empty()) config.precision.recipe = settings.recipe.name;
  config.precision.fp8 = config.precision.fp4 = false;
  config.bf16 = settings.recipe.compute == DType::kBFloat16;
  config.precision.fp16 = settings.recipe.compute == DType::kFloat16;
  return settings;
}

std::shared_ptr<const PrecisionPolicy> precision_policy(PrecisionSettings settings, const ModelConfig& model) {
  if (!settings.decides()) return nullptr;
  return std::make_shared<PrecisionPolicy>(std::move(settings.recipe), settings.rules, linear_modules(model));
}

PrecisionPolicy explain_precision(const TrainConfig& config) {
  PrecisionSettings settings = precision_settings(config);
  return PrecisionPolicy(std::move(settings.recipe), settings.rules, linear_modules(config.model));
}

std::string low_precision_cause(const RunPlan& plan) {
  if (plan.precision && plan.precision->quantizes()) return plan.precision->recipe().name;
  const auto has_few = [](DType type) { return size_bytes(type) < size_bytes(DType::kFloat32); };
  if (has_few(plan.config.element_dtype())) return std::string(name(plan.config.element_dtype()));
  if (!plan.precision) return "";
  const auto few = std::ranges::find_if(plan.precision->modules(), has_few, &ModulePrecision::compute);
  return few == plan.precision->modules().end() ? "" : std::string(name(few->compute));
}

}  // namespace ranklab
