// The same training with nothing in fewer bits than fp32: what rounding hides of a layout shows there. Torch-free.
// Thread rule: pure.
#pragma once
#include "core/config/train_config.h"

namespace ranklab {

// Parameters, products, states and messages in fp32; the layout stays. Throws nothing.
TrainConfig in_fp32(TrainConfig config);

}  // namespace ranklab
