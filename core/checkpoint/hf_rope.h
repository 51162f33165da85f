// Rotary positions in a config.json: "rope_theta" with "rope_scaling" (until transformers 4), or "rope_parameters" with
// both (since 5). The first form is written: every version reads it. Plain rotation, linear and dynamic stretches,
// Llama 3's and YaRN are representable; others (longrope, mrope, ...) are refused. A share of the head that turns is
// read of every family; which have one is for their checks. Thread rule: pure functions.
#pragma once
#include <string>

#include "core/checkpoint/hf_key.h"
#include "core/checkpoint/hf_refusal.h"

namespace ranklab {

void write_hf_rope(HfJson& file, const ModelConfig& config);
// Into a model that has its sizes, and the theta of a file that does not say. Throws kBadFile naming the key.
void read_hf_rope(ModelConfig& config, const HfJson& file, const std::string& path);

// What no file can say of the stretch.
void check_hf_rope(const HfRefusal& refusal, const ModelConfig& config);

}  // namespace ranklab
