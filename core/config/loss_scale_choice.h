// Which loss scale a run trains under. Torch-free. Thread rule: pure.
#pragma once
#include <optional>

#include "core/config/train_config.h"
#include "core/optim/loss_scaler.h"

namespace ranklab {

// The constant one that is asked for, else in fp16 one that follows overflows; none: gradients are as they come.
std::optional<LossScaleRule> loss_scale_rule(const TrainConfig& config);

}  // namespace ranklab
