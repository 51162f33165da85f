// The settings for data on a Megatron-LM command line. Its data files must be converted to shards before ranklab can
// read them. Torch-free. Thread rule: pure functions.
#pragma once
#include "cli/config/foreign_config.h"
#include "cli/config/megatron_words.h"

namespace ranklab {

// `usual`: the origin of settings that the line does not give. Throws kInvalidArgument for a malformed --split.
ForeignConfig read_megatron_data(const MegatronWords& words, const char* usual);

}  // namespace ranklab
