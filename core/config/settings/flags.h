// Flags as one types them, where no command line is parsed. Torch-free. Thread rule: pure.
#pragma once
#include <string>
#include <vector>

#include "core/config/settings/sources.h"

namespace ranklab {

// "--tp", "2", "--no-sequence-parallel" as settings. `option`: what the words belong to, for errors. Throws
// kInvalidArgument for a flag without its value, and with the nearest name for an unknown one.
std::vector<ConfigSetting> flag_settings(const std::vector<std::string>& words, const std::string& option);

}  // namespace ranklab
