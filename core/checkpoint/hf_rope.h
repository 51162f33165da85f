// Rotary positions in a config.json: "rope_theta" with "rope_scaling" (until transformers 4), or "rope_parameters" with
// both (since 5). The first form is written: every version reads it. Plain rotation and YaRN as DeepSeek-V3 has it are
// representable; other stretches (linear, dynamic, llama3, ...) and a rotation of a part of the head are refused.
// Thread rule: pure functions.
#pragma once
#include <string>

#include "core/checkpoint/hf_key.h"

namespace ranklab {

void write_hf_rope(HfJson& file, const ModelConfig& config);
// Into a model that has the theta of a file that does not say. Throws kBadFile naming the key.
void read_hf_rope(ModelConfig& config, const HfJson& file, const std::string& path);

}  // namespace ranklab
