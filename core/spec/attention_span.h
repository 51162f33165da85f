// How many keys the queries of a causal sequence see, for costs: with the half of the square that a mask leaves counted
// as half, so that FLOPs of a sequence are linear in this. Torch-free.
#pragma once
#include <cstdint>

namespace ranklab {

// Twice the mean of keys a query sees; window 0, or of the sequence's length and more: all before it.
inline double attention_span(int64_t seq_length, int64_t window) {
  if (window <= 0 || window >= seq_length) return static_cast<double>(seq_length);
  const auto seq = static_cast<double>(seq_length), seen = static_cast<double>(window);
  return seen * (2 * seq - seen) / seq;
}

}  // namespace ranklab
