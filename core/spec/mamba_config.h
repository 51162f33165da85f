// Hybrid models (Nemotron-H, Blakeman et al. 2025, arXiv 2504.03624): layers with one mixer each, of which a pattern
// says the kind, and the sizes of Mamba-2 (Dao and Gu 2024, arXiv 2405.21060), whose past is a matrix of fixed size for
// each head. Named as in Megatron-LM. Torch-free.
#pragma once
#include <cstdint>
#include <string>

namespace ranklab {

// What mixes in a layer: a pattern's letters.
enum class LayerMixer : char { kMamba = 'M', kAttention = '*', kMlp = '-', kExperts = 'E' };
constexpr const char* kMixerLetters = "M*-E";

// Positions of a chunk, within which a state space is computed by matrix products (core/nn/recurrent/state_space.h).
constexpr int64_t kStateSpaceChunk = 64;

// Of one position of all heads, forward: the products of the chunk's positions (those before it: half of them) of each
// group, what they give to each head, and reading and writing its matrix.
constexpr double state_space_flops(int64_t heads, int64_t groups, int64_t head_dim, int64_t state_dim) {
  const auto h = static_cast<double>(heads), p = static_cast<double>(head_dim), n = static_cast<double>(state_dim);
  const auto c = static_cast<double>(kStateSpaceChunk);
  return h * (4 * p * n + c * p) + static_cast<double>(groups) * c * n;
}

struct MambaConfig {
  int64_t num_heads = 0;    // 0: as many as make twice the hidden size
  int64_t head_dim = 64;    // P
  int64_t state_dim = 128;  // N
  int64_t num_groups = 8;   // whose heads share what is written to and read from the state
  int64_t conv_kernel = 4;
  double min_step = 0.0;  // smallest step of the recurrence, as transformers' class has one; 0: none

  bool operator==(const MambaConfig&) const = default;
};

}  // namespace ranklab
