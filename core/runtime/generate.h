// Text from a model: one token at a time over the whole window (no key/value cache), drawn from a counter stream, so
// that every tensor-parallel rank draws the same token and a seed gives the same text. Cost: one forward of seq_length
// per token.
#pragma once
#include <c10/core/Device.h>

#include <functional>
#include <string>

#include "core/model/causal_lm.h"

namespace ranklab {

struct GenerateOptions {
  std::string prompt;
  int64_t tokens = 100;
  double temperature = 1.0;  // 0: the likeliest token
  int64_t seq_length = 128;  // window; the model sees this many last tokens
  uint64_t seed = 0;
  c10::Device device{c10::kCPU};
};

// Collective over the model-parallel group. Byte-level vocabulary. RETURNS: prompt + generated text; bytes that are not
// printable ASCII or a newline come out as '.'.
// logits: of a batch, [B, S, V] (CausalLm::logits(), or through a pipeline).
std::string generate_text(const std::function<at::Tensor(const Batch&)>& logits, const GenerateOptions& options);

}  // namespace ranklab
