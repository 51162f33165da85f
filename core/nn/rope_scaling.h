// RoPE frequencies for the scaling methods other than YaRN (listed in core/spec/rope_config.h), computed as in
// transformers. With dynamic scaling every sequence length has its own table (S D / 2 cosines and sines), which is made
// whenever the length differs from that of the last call; LongRoPE has two tables. Thread rule: pure functions; a table
// that depends on the length belongs to its rank.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/nn/rope.h"
#include "core/spec/rope_config.h"

namespace ranklab {

// [D/2] in fp64, for a sequence of `seq_length`. REQUIRES: head_dim is even, and at least 4 with kDynamic.
at::Tensor scaled_frequencies(int64_t head_dim, double theta, const RopeScaling& scaling, int64_t seq_length);

// The factor by which LongRoPE multiplies cosines and sines (as in transformers).
double long_rope_scale(const RopeScaling& scaling);

// A table for sequences of up to `seq_length`.
RopeTable make_scaled_table(int64_t seq_length, const RopeShape& shape, const RopeScaling& scaling,
                            const at::TensorOptions& options);

}  // namespace ranklab
