// Converts a command line of Megatron-LM's pretrain_gpt.py to settings of ranklab. Torch-free. Thread rule: pure
// functions.
#pragma once
#include <string>
#include <vector>

#include "cli/config/foreign_config.h"

namespace ranklab {

// `words`: as the shell passes them, with or without "torchrun ... pretrain_gpt.py". Throws kInvalidArgument for flags
// that neither program has (one error names all of them), and for flags whose computation ranklab does not have.
ForeignConfig read_megatron_line(const std::vector<std::string>& words);

}  // namespace ranklab
