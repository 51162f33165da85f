// Writes a model's logits for a fixed text to a file that other programs can read: safetensors with "tokens" [S] and
// "logits" [S, V], fp32 (fp64 for fp64 models). Thread rule: every rank that works on the text calls it; rank 0 writes.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/runtime/text/run_scorer.h"

namespace ranklab {

// Whether the file was written by write_logits(). Throws kIo, and kBadFile if it is not a safetensors file.
bool is_logits_file(const std::string& path);
void write_logits(StepContext& context, const std::vector<int64_t>& tokens, const std::string& path);

}  // namespace ranklab
