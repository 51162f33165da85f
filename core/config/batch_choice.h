// A batch given in tokens, and a run given in sequences: --global-batch-size and --train-iters follow. Both by the time
// that sources are merged, so that whoever adapts a configuration later changes the numbers that count.
// Thread rule: pure function.
#pragma once
#include <map>
#include <string>

#include "core/config/train_config.h"

namespace ranklab {

// Fills global_batch_size and train_iters, whose origins become those of the settings they follow from. As Megatron-LM
// does, the steps of --train-samples are whole ones: what is left of the sequences is not trained on. Throws
// kInvalidArgument if a source also gave the number that follows, and another one.
void settle_batch(TrainConfig& config, std::map<std::string, std::string>& origins);

}  // namespace ranklab
