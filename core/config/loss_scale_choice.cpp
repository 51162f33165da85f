#include "core/config/loss_scale_choice.h"

namespace ranklab {

std::optional<LossScaleRule> loss_scale_rule(const TrainConfig& config) {
  const PrecisionConfig& p = config.precision;
  if (p.loss_scale != 0) return LossScaleRule{.dynamic = false, .initial = p.loss_scale};
  if (!p.fp16) return std::nullopt;
  return LossScaleRule{.dynamic = true,
                       .initial = p.initial_loss_scale,
                       .min = p.min_loss_scale,
                       .max = p.max_loss_scale,
                       .window = p.loss_scale_window};
}

}  // namespace ranklab
