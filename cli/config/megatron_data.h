// What a command line of Megatron-LM says of its data, which are in files that ranklab reads only once they are made
// its shards. Torch-free. Thread rule: pure functions.
#pragma once
#include "cli/config/foreign_config.h"
#include "cli/config/megatron_words.h"

namespace ranklab {

// `usual`: the origin of what the line does not say. Throws kInvalidArgument for a --split that is none.
ForeignConfig read_megatron_data(const MegatronWords& words, const char* usual);

}  // namespace ranklab
