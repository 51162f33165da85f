// How a command line of Megatron-LM divides its layers among pipeline stages. Torch-free. Thread rule: pure functions.
#pragma once
#include <cstdint>
#include <vector>

#include "cli/config/foreign_config.h"
#include "cli/config/megatron_words.h"

namespace ranklab {

struct MegatronLayers {
  int64_t count = 0;
  std::vector<int64_t> stages = {};  // of each stage, if a hybrid model's pattern gives them
};

// The settings for `layers` on `pp` ranks; none for one rank. `usual`: the origin of settings that the line does not
// give. Throws kInvalidArgument for what Megatron-LM rejects too.
std::vector<ConfigSetting> read_megatron_pipeline(const MegatronWords& words, const MegatronLayers& layers, int64_t pp,
                                                  const char* usual);

}  // namespace ranklab
