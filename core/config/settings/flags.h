// Parses flags as a user types them, in places where no command line is parsed. Torch-free. Thread rule: pure.
#pragma once
#include <string>
#include <vector>

#include "core/config/settings/sources.h"

namespace ranklab {

// "--tp", "2", "--no-sequence-parallel" as settings. `option`: the option to which the words belong, for errors. Throws
// kInvalidArgument for a flag without its value, and, with the nearest name, for an unknown flag.
std::vector<ConfigSetting> flag_settings(const std::vector<std::string>& words, const std::string& option);

}  // namespace ranklab
