// The same training run with nothing in lower precision than fp32: it reveals differences between layouts that rounding
// hides. Torch-free. Thread rule: pure.
#pragma once
#include "core/config/train_config.h"

namespace ranklab {

// Sets parameters, products, states and messages to fp32; the layout stays the same. Throws nothing.
TrainConfig in_fp32(TrainConfig config);

}  // namespace ranklab
