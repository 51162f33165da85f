// How many keys the queries of a causal sequence attend to, for cost models: twice the mean, which without a window is
// the sequence length. The attention FLOPs of a sequence are linear in it. Torch-free.
#pragma once
#include <cstdint>

namespace ranklab {

// Twice the mean number of keys per query. `window` 0, or at least the sequence length: all previous keys. `chunk`:
// queries attend only within chunks of this many positions; 0, or at least the sequence length: there are no chunks.
inline double attention_span(int64_t seq_length, int64_t window, int64_t chunk = 0) {
  if (chunk > 0 && chunk < seq_length) {
    const auto pairs = [window](int64_t length) {
      return static_cast<double>(length) * attention_span(length, window);
    };
    return (static_cast<double>(seq_length / chunk) * pairs(chunk) + pairs(seq_length % chunk)) /
           static_cast<double>(seq_length);
  }
  if (window <= 0 || window >= seq_length) return static_cast<double>(seq_length);
  const auto seq = static_cast<double>(seq_length), seen = static_cast<double>(window);
  return seen * (2 * seq - seen) / seq;
}

}  // namespace ranklab
