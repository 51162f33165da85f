// A command line of Megatron-LM's pretrain_gpt.py as settings of ranklab. Torch-free. Thread rule: pure functions.
#pragma once
#include <string>
#include <vector>

#include "cli/config/foreign_config.h"

namespace ranklab {

// `words`: as the shell hands them over, with or without "torchrun ... pretrain_gpt.py". Throws kInvalidArgument for
// flags that neither has, all of them at once, and for those whose computation ranklab has not.
ForeignConfig read_megatron_line(const std::vector<std::string>& words);

}  // namespace ranklab
