// Tokens from a model, one at a time, drawn from a counter stream, so that every tensor-parallel rank draws the same
// token and a seed gives the same text. The model sees a window of its last tokens; when that is full the older half is
// dropped, because positions and caches begin anew with a window.
//
// Where the next token's logits come from is a TokenScorer: a key/value cache (the window is computed once, then one
// position a token), or the whole window each time (for pipelines, and what the cache is tested against).
// Thread rule: each rank's thread, collectively over its model-parallel group.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/model/causal_lm.h"

namespace ranklab {

class TokenScorer {
 public:
  virtual ~TokenScorer() = default;
  // Logits [V] of the token after `window`: that of the call before and what was drawn since, or a new one.
  virtual at::Tensor next_logits(const std::vector<int64_t>& window) = 0;
  virtual int64_t cache_bytes_per_token() const { return 0; }  // on this rank
};

// Cost: one position a token, and seq_length / 2 of them each time the window begins anew. Memory: a cache of
// seq_length positions. REQUIRES: model.can_decode(). The model outlives the scorer.
std::unique_ptr<TokenScorer> make_cached_scorer(CausalLm& model, int64_t seq_length);
// logits: of a batch, [B, S, V] (CausalLm::logits(), or through a pipeline). Cost: one forward of seq_length a token.
std::unique_ptr<TokenScorer> make_window_scorer(std::function<at::Tensor(const Batch&)> logits, int64_t seq_length,
                                                c10::Device device);

struct GenerateOptions {
  int64_t tokens = 100;
  double temperature = 1.0;  // 0: the likeliest token
  int64_t top_k = 0;         // draws among so many likeliest tokens; 0: all
  int64_t seq_length = 128;  // of the window
  uint64_t seed = 0;
};

// RETURNS: the prompt and what follows. Throws kInvalidArgument for an empty prompt.
std::vector<int64_t> generate_tokens(TokenScorer& scorer, std::vector<int64_t> prompt, const GenerateOptions& options);

// Of a byte-level vocabulary; bytes that are not printable ASCII or a newline come out as '.'.
std::vector<int64_t> prompt_tokens(const std::string& text);
std::string printable_text(const std::vector<int64_t>& tokens);

}  // namespace ranklab
