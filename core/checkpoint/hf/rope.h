// RoPE in a config.json: "rope_theta" with "rope_scaling" (until transformers 4), or "rope_parameters" with both (since
// 5). The first form is written, because every version reads it. Plain rotation, linear and dynamic scaling, Llama 3's
// and YaRN are representable; others (longrope, mrope, ...) are refused. The rotary fraction of a head is read for
// every family; whether a family may have one is up to its checks. A class with another RoPE for layers with a window
// has an object for each kind of layer in the second form alone, any other class in none. A file with both forms says
// the same in both. Thread rule: pure functions.
#pragma once
#include <string>

#include "core/checkpoint/hf/key.h"
#include "core/checkpoint/hf/refusal.h"

namespace ranklab {

// `absent`: what a file without these keys means (HfFamily::model).
void write_hf_rope(HfJson& file, const ModelConfig& config, const ModelConfig& absent);
// Reads into a model whose sizes are set; `theta`: the value in a file without the key. Throws kBadFile naming the key.
void read_hf_rope(ModelConfig& config, const HfJson& file, const std::string& path);

// Refuses RoPE scaling that no file can express.
void check_hf_rope(const HfRefusal& refusal, const ModelConfig& config);
// ... of a class with an object for each kind of layer: transformers looks for YaRN's "truncate" beside these objects,
// where no file has it.
void check_hf_rope_of_kinds(const HfRefusal& refusal, const ModelConfig& config);

}  // namespace ranklab
