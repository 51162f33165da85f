// What is computed otherwise here than a command line of Megatron-LM says, where both have the flag, or Megatron-LM
// does it unasked (its sources at commit d98e8a64dd): `config from-megatron` tells it. Torch-free. Thread rule: pure.
#pragma once
#include <string>
#include <vector>

#include "cli/config/megatron_words.h"

namespace ranklab {

// "FLAG: what is done here instead".
std::vector<std::string> megatron_differences(const MegatronWords& words);

}  // namespace ranklab
