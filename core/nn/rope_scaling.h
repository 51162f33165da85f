// RoPE frequencies of the scaling methods other than YaRN (listed in core/spec/rope_config.h), as transformers computes
// them. Dynamic scaling depends on the sequence length, so every length has its own table, made whenever the length
// differs from the last call's (S D / 2 cosines and sines); LongRoPE has two tables.
// Thread rule: pure functions; a table that depends on the length belongs to its rank.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/nn/rope.h"
#include "core/spec/rope_config.h"

namespace ranklab {

// [D/2] in fp64, for a sequence of `seq_length`. REQUIRES: head_dim even, with kDynamic 4 or more.
at::Tensor scaled_frequencies(int64_t head_dim, double theta, const RopeScaling& scaling, int64_t seq_length);

// The factor on the cosines and sines of LongRoPE (as in transformers).
double long_rope_scale(const RopeScaling& scaling);

// For sequences of up to `seq_length`.
RopeTable make_scaled_table(int64_t seq_length, const RopeShape& shape, const RopeScaling& scaling,
                            const at::TensorOptions& options);

}  // namespace ranklab
