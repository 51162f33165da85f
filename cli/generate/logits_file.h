// A model's logits for a fixed text, in a file that other programs can read: safetensors with "tokens" [S] and "logits"
// [S, V], fp32 (fp64 for fp64 models). Thread rule: every rank of the model calls it; rank 0 writes.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/model/causal_lm.h"

namespace ranklab {

// Whether write_logits() wrote it. Throws kIo, and kBadFile if it is not a safetensors file.
bool is_logits_file(const std::string& path);
void write_logits(CausalLm& model, const std::vector<int64_t>& tokens, int global_rank, const std::string& path);

}  // namespace ranklab
