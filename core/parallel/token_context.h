// Identifies the training-data tokens that a layer works on: the key for stochastic rounding, and needed to record
// statistics once per step. Passed down with the forward; backward uses the forward's. Thread rule: plain data.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace ranklab {

struct TokenContext {
  int64_t step = 0;
  int64_t first_sample = 0;     // index of the microbatch's first sample in the step's global batch
  int64_t seq_length = 0;       // the model's maximum sequence length: the stride between samples
  bool trains = false;          // false in validation and generation
  bool whole_sequence = false;  // every tp rank has all positions despite sequence parallelism, as in decoding
  // This rank's positions of each sequence under context parallelism; null: all of them.
  std::shared_ptr<const std::vector<int64_t>> positions = nullptr;
  // In a recorded pass, the step and the first sample as a tensor on the device (core/nn/device_random.h); undefined:
  // the fields above apply.
  at::Tensor random_offset = {};

  int64_t position(int64_t index) const {
    return positions != nullptr ? positions->at(static_cast<size_t>(index)) : index;
  }
};

// Which tokens the rows of a matrix belong to.
struct TokenRows {
  TokenContext tokens = {};
  int64_t sequences = 0;  // rows are [S, sequences]; 0: arbitrary tokens (as for experts), identified by their contents
};

}  // namespace ranklab
