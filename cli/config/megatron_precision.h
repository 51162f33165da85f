// The settings for number types and formats on a Megatron-LM command line. Torch-free. Thread rule: pure functions.
#pragma once
#include <cstdint>
#include <vector>

#include "cli/config/foreign_config.h"
#include "cli/config/megatron_words.h"

namespace ranklab {

// For a model with `layers` layers. `usual`: the origin of settings that the line does not give. Throws
// kInvalidArgument for a recipe that has no counterpart here.
std::vector<ConfigSetting> read_megatron_precision(const MegatronWords& words, int64_t layers, const char* usual);

}  // namespace ranklab
