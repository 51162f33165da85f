// What a command line of Megatron-LM says of number types and formats. Torch-free. Thread rule: pure functions.
#pragma once
#include <cstdint>
#include <vector>

#include "cli/config/foreign_config.h"
#include "cli/config/megatron_words.h"

namespace ranklab {

// Of a model of `layers`. `usual`: the origin of what the line does not say. Throws kInvalidArgument for a recipe that
// there is none of here.
std::vector<ConfigSetting> read_megatron_precision(const MegatronWords& words, int64_t layers, const char* usual);

}  // namespace ranklab
