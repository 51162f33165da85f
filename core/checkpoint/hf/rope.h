// RoPE in a config.json: "rope_theta" with "rope_scaling" (up to transformers 4), or "rope_parameters" with both (since
// 5). The first form is written, because every version reads it. Plain rotation, linear and dynamic scaling, Llama 3's,
// longrope and YaRN can be represented; other kinds (mrope, ...) are refused. The rotary fraction of a head is read for
// every family; the checks of a family decide whether it may have one. In the second form, a class with a separate RoPE
// for layers with a window has one object per kind of layer; other classes do not. A file with both forms must say the
// same in both. Thread rule: pure functions.
#pragma once
#include <string>

#include "core/checkpoint/hf/key.h"
#include "core/checkpoint/hf/refusal.h"

namespace ranklab {

// `absent`: the model that a file without these keys describes (HfFamily::model).
void write_hf_rope(HfJson& file, const ModelConfig& config, const ModelConfig& absent);
// Reads into a model whose sizes are already set. Throws kBadFile naming the key.
void read_hf_rope(ModelConfig& config, const HfJson& file, const std::string& path);

// Refuses RoPE scaling that no file can express.
void check_hf_rope(const HfRefusal& refusal, const ModelConfig& config);
// The same for a class with one object per kind of layer: transformers looks for YaRN's "truncate" next to these
// objects, where no file has it.
void check_hf_rope_of_kinds(const HfRefusal& refusal, const ModelConfig& config);

}  // namespace ranklab
