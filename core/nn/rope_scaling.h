// Frequencies of rotary positions stretched without YaRN (core/spec/rope_config.h says which stretches there are), as
// the classes of transformers compute them. Dynamic ones follow the length of the sequence at hand, so every length has
// a table of its own: one is made when a length comes that is not that of the last call, in S D / 2 cosines and sines;
// LongRoPE has two.
// Thread rule: pure functions; a table that follows the length is its rank's.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/nn/rope.h"
#include "core/spec/rope_config.h"

namespace ranklab {

// [D/2] in fp64, for a sequence of `seq_length`. REQUIRES: head_dim even, with kDynamic 4 or more.
at::Tensor scaled_frequencies(int64_t head_dim, double theta, const RopeScaling& scaling, int64_t seq_length);

// What both tables of LongRoPE are multiplied with (as the classes of transformers have it).
double long_rope_scale(const RopeScaling& scaling);

// For sequences of up to `seq_length`.
RopeTable make_scaled_table(int64_t seq_length, const RopeShape& shape, const RopeScaling& scaling,
                            const at::TensorOptions& options);

}  // namespace ranklab
