// Generates tokens one at a time, drawn from a counter-based stream, so that every tensor-parallel rank draws the same
// token and a seed gives the same text. The model sees a window of the last tokens; when it is full the older half is
// dropped, because positions and caches start over with each window.
//
// A TokenScorer computes the next token's logits: with a key/value cache (the window once, then one position per
// token), or from the whole window each time (for pipelines, and as the reference for testing the cache).
// Thread rule: each rank's thread, collectively over its model-parallel group.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/model/causal_lm.h"
#include "core/spec/model_config.h"

namespace ranklab {

class TokenScorer {
 public:
  virtual ~TokenScorer() = default;
  // Logits [V] of the token after `window`: the previous call's window plus the drawn token, or a new window.
  virtual at::Tensor next_logits(const std::vector<int64_t>& window) = 0;
  virtual int64_t cache_bytes_per_token() const { return 0; }  // on this rank
};

// Scores with a cache. Cost: one position per token, plus seq_length / 2 positions each time the window starts over,
// plus the whole text once when it grows beyond LongRoPE's original length (as in transformers' Phi3ForCausalLM).
// Memory: a cache of seq_length positions. REQUIRES: model.can_decode(). The model must outlive the scorer.
std::unique_ptr<TokenScorer> make_cached_scorer(CausalLm& model, const ModelConfig& config);
// Scores from the whole window. `logits` maps tokens [B, S] to [B, S, V] (for a run: run_scorer.h). A model whose ranks
// split sequences gets windows whose length is a multiple of `multiple`. Cost: one forward of the window per token.
std::unique_ptr<TokenScorer> make_window_scorer(std::function<at::Tensor(const at::Tensor&)> logits, c10::Device device,
                                                int64_t multiple = 1);

struct GenerateOptions {
  int64_t tokens = 100;
  double temperature = 1.0;  // 0: greedy, the likeliest token
  int64_t top_k = 0;         // samples from the k likeliest tokens; 0: from all
  // Of those, sample from the likeliest tokens that together have this probability (Holtzman et al. 2019, arXiv
  // 1904.09751).
  double top_p = 1.0;
  std::vector<int64_t> end_tokens = {};  // the text ends after any of them
  int64_t seq_length = 128;              // length of the window
  uint64_t seed = 0;
};

// RETURNS: the prompt and its continuation. Throws kInvalidArgument for an empty prompt.
std::vector<int64_t> generate_tokens(TokenScorer& scorer, std::vector<int64_t> prompt, const GenerateOptions& options);

// For a byte-level vocabulary. Control characters and bytes that are not UTF-8 are shown as '.'.
std::vector<int64_t> prompt_tokens(const std::string& text);
std::string printable_text(const std::vector<int64_t>& tokens);

}  // namespace ranklab
