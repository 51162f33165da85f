// A command line of Megatron-LM's pretrain_gpt.py as settings of ranklab. Torch-free. Thread rule: pure functions.
#pragma once
#include <string>
#include <vector>

#include "core/config/settings/sources.h"

namespace ranklab {

struct MegatronLine {
  std::vector<ConfigSetting> settings;  // the origin of each: its flag, or "default of Megatron-LM"
  std::vector<std::string> left_out;    // "--flag: what is done here without it"
};

// `words`: as the shell hands them over, with or without "torchrun ... pretrain_gpt.py". Throws kInvalidArgument for
// flags that neither has, all of them at once, and for those whose computation ranklab has not.
MegatronLine read_megatron_line(const std::vector<std::string>& words);

}  // namespace ranklab
