// How a command line of Megatron-LM parts its layers over the stages of a pipeline. Torch-free. Thread rule: pure
// functions.
#pragma once
#include <cstdint>
#include <vector>

#include "cli/config/foreign_config.h"
#include "cli/config/megatron_words.h"

namespace ranklab {

struct MegatronLayers {
  int64_t count = 0;
  std::vector<int64_t> stages = {};  // of each stage, where a pattern of a hybrid model says it
};

// Of `layers` on `pp` ranks; none for one rank. `usual`: the origin of what the line does not say. Throws
// kInvalidArgument for what Megatron-LM does not take either.
std::vector<ConfigSetting> read_megatron_pipeline(const MegatronWords& words, const MegatronLayers& layers, int64_t pp,
                                                  const char* usual);

}  // namespace ranklab
