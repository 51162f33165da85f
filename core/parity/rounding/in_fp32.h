// The same training with nothing in fewer bits than fp32: what rounding hides of a layout shows there. Torch-free.
// Thread rule: pure.
#pragma once
#include <string>

#include "core/config/train_config.h"

namespace ranklab {

// In which fewer bits a run computes: the recipe that quantizes, or the type of parameters or of products; "": none.
std::string few_bits_of(const RunPlan& plan);

// Parameters, products, states and messages in fp32; the layout stays. Throws nothing.
TrainConfig in_fp32(TrainConfig config);

}  // namespace ranklab
