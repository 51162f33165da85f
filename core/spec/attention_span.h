// How many keys the queries of a causal sequence attend to, for costs: twice the mean, which without a window is the
// sequence length. Attention FLOPs of a sequence are linear in it. Torch-free.
#pragma once
#include <cstdint>

namespace ranklab {

// Twice the mean number of keys per query; window 0, or at least the sequence length: all previous keys.
inline double attention_span(int64_t seq_length, int64_t window) {
  if (window <= 0 || window >= seq_length) return static_cast<double>(seq_length);
  const auto seq = static_cast<double>(seq_length), seen = static_cast<double>(window);
  return seen * (2 * seq - seen) / seq;
}

// ... where queries attend within chunks; chunk 0, or at least the sequence length: there are none.
inline double chunked_attention_span(int64_t seq_length, int64_t chunk) {
  if (chunk <= 0 || chunk >= seq_length) return static_cast<double>(seq_length);
  const auto whole = static_cast<double>(seq_length / chunk), size = static_cast<double>(chunk);
  const auto rest = static_cast<double>(seq_length % chunk);
  return (whole * size * size + rest * rest) / static_cast<double>(seq_length);
}

}  // namespace ranklab
