// Converts a torchtitan configuration (TOML files and overrides of version 0.2) to settings of ranklab. Torch-free.
// Thread rule: pure functions.
#pragma once
#include <string>
#include <vector>

#include "cli/config/foreign_config.h"

namespace ranklab {

// `words`: FILE.toml and "--section.key value", with or without the script or torchrun before them
// (torchtitan_words.h). Throws kIo, kBadFile, and kInvalidArgument for keys that neither program has (one error names
// all of them) and for models and computations that ranklab does not have.
ForeignConfig read_torchtitan_config(const std::vector<std::string>& words);

}  // namespace ranklab
