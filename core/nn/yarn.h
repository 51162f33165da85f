// YaRN (Peng et al. 2023, arXiv 2309.00071) as in DeepSeek-V3 and transformers: rotary frequencies for sequences
// `scaling_factor` times longer than those trained on. Pairs that make more than beta_fast rotations within the
// original length keep their frequency, pairs that make fewer than beta_slow get it divided by the factor, and pairs in
// between are interpolated linearly; attention scores are multiplied by a temperature. The tables are stretched for
// every sequence length, as in the model's Hugging Face code and in Megatron-LM (DeepSeek's own demo stretches only
// past the original length). Thread rule: pure functions.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/nn/rope.h"
#include "core/spec/rope_config.h"

namespace ranklab {

// 0.1 mscale ln(scaling_factor) + 1, and 1 without stretching.
double yarn_mscale(double scaling_factor, double mscale);

// The factor on the cosines and sines: attention_factor, or mscale over mscale_all_dim (1 in DeepSeek-V3).
double yarn_table_scale(const YarnConfig& yarn);

// [D/2] in fp64, in the order of rope.h; plain rotary frequencies when YaRN is not enabled. REQUIRES: head_dim even.
at::Tensor yarn_frequencies(int64_t head_dim, double theta, const YarnConfig& yarn);

// make_rope_table() with YaRN's frequencies and scale.
RopeTable make_yarn_table(int64_t seq_length, const RopeShape& shape, const YarnConfig& yarn,
                          const at::TensorOptions& options);

// The softmax scale of latent attention: 1 / sqrt(query_head_dim), times yarn_mscale(mscale_all_dim)^2.
double yarn_softmax_scale(int64_t query_head_dim, const YarnConfig& yarn);

}  // namespace ranklab
