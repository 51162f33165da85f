// Which loss scale a run trains under. Torch-free. Thread rule: pure.
#pragma once
#include <optional>

#include "core/config/train_config.h"
#include "core/optim/loss_scaler.h"

namespace ranklab {

// The constant loss scale if one was requested, or else dynamic scaling in fp16; nothing if gradients are not scaled.
std::optional<LossScaleRule> loss_scale_rule(const TrainConfig& config);

}  // namespace ranklab
