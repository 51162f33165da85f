// What is computed differently here from what a Megatron-LM command line asks for, although both programs have the
// flag, or because Megatron-LM does it without a flag (its sources at commit d98e8a64dd). `config from-megatron` prints
// it. Torch-free. Thread rule: pure.
#pragma once
#include <string>
#include <vector>

#include "cli/config/megatron_words.h"

namespace ranklab {

// "FLAG: what is done here instead".
std::vector<std::string> megatron_differences(const MegatronWords& words);

}  // namespace ranklab
