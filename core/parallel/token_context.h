// Identifies the tokens of the training data that a layer works on, as the key of stochastic rounding and to record
// statistics once per step. Passed down with the forward; backward uses the forward's. Thread rule: plain data.
#pragma once
#include <cstdint>

namespace ranklab {

struct TokenContext {
  int64_t step = 0;
  int64_t first_sample = 0;     // index of the microbatch's first sample in the step's global batch
  int64_t seq_length = 0;       // the model's maximum sequence length: the stride between samples
  bool trains = false;          // false in validation and generation
  bool whole_sequence = false;  // every tp rank has all positions despite sequence parallelism: decoding
};

}  // namespace ranklab
