// Hybrid models (Nemotron-H, Blakeman et al. 2025, arXiv 2504.03624), whose layers have one mixer each, of the kind
// given by a pattern; and the sizes of Mamba-2 (Dao and Gu 2024, arXiv 2405.21060), which summarizes past tokens in a
// matrix of fixed size per head. Settings are named as in Megatron-LM. Torch-free.
#pragma once
#include <cstdint>

namespace ranklab {

// The kinds of mixers, with the letters that stand for them in a pattern.
enum class LayerMixer : char { kMamba = 'M', kAttention = '*', kMlp = '-', kExperts = 'E' };
constexpr const char* kMixerLetters = "M*-E";

// Positions per chunk; within a chunk a state space is computed with matrix products (core/nn/recurrent/state_space.h).
constexpr int64_t kStateSpaceChunk = 64;

// Forward FLOPs for one position of all heads: for each group the products between positions of the chunk (only earlier
// ones: half of them on average), their contributions to each head, and reading and writing each head's state matrix.
constexpr double state_space_flops(int64_t heads, int64_t groups, int64_t head_dim, int64_t state_dim) {
  const auto h = static_cast<double>(heads), p = static_cast<double>(head_dim), n = static_cast<double>(state_dim);
  const auto c = static_cast<double>(kStateSpaceChunk);
  return h * (4 * p * n + c * p) + static_cast<double>(groups) * c * n;
}

struct MambaConfig {
  int64_t num_heads = 0;    // 0: as many as make twice the hidden size
  int64_t head_dim = 64;    // P
  int64_t state_dim = 128;  // N
  int64_t num_groups = 8;   // the heads of a group share what they write to the state and read from it (B and C)
  int64_t conv_kernel = 4;
  double min_step = 0.0;  // smallest step size of the recurrence, as in transformers' class; 0: no limit

  bool operator==(const MambaConfig&) const = default;
};

}  // namespace ranklab
