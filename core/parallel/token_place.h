// Which tokens of the training data a layer works on, for what draws a number for each (stochastic rounding) and for
// what is noted of a step once. Handed down with the forward; backward keeps the forward's. Thread rule: plain data.
#pragma once
#include <cstdint>

namespace ranklab {

struct TokenPlace {
  int64_t step = 0;
  int64_t first_sample = 0;     // of the microbatch in the global batch of the step
  int64_t seq_length = 0;       // the model's longest sequence: the stride between samples
  bool trains = false;          // not validation, not generation
  bool whole_sequence = false;  // every tp rank has all positions, also with sequence parallelism: decoding
};

}  // namespace ranklab
