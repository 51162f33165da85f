// Layers with linear attention, whose past is a matrix of fixed size instead of keys and values, between those with
// softmax attention: Gated DeltaNet (Yang et al. 2024, arXiv 2412.06464), as Qwen3-Next has it in three layers of four.
// Named as in Megatron-LM. Torch-free.
#pragma once
#include <cstdint>

#include "core/spec/layer_pattern.h"

namespace ranklab {

enum class LinearAttentionKind { kNone, kGatedDeltaNet };

// Positions of a chunk, within which the delta rule is computed by matrix products
// (core/nn/recurrent/gated_delta_rule.h).
constexpr int64_t kDeltaChunk = 64;

// Of one position of one head of values, forward: its products with the chunk's keys (those before it: half of them),
// the triangular system, and reading and writing the matrix.
constexpr double delta_rule_flops(int64_t key_dim, int64_t value_dim) {
  const auto k = static_cast<double>(key_dim), v = static_cast<double>(value_dim), c = static_cast<double>(kDeltaChunk);
  return 6 * k * v + c * (3 * k + 2 * v);
}

struct LinearAttentionConfig {
  LinearAttentionKind kind = LinearAttentionKind::kNone;
  LayerPattern layers = {.skip_freq = 4, .pattern = {}};  // those that have it; the others keep softmax attention
  int64_t num_key_heads = 16;                             // of queries, too
  int64_t num_value_heads = 32;                           // each key head serves as many neighbours
  int64_t key_head_dim = 128;
  int64_t value_head_dim = 128;
  int64_t conv_kernel = 4;  // positions that the convolution of queries, keys and values sees

  bool enabled() const { return kind != LinearAttentionKind::kNone; }
  int64_t key_width() const { return num_key_heads * key_head_dim; }
  int64_t value_width() const { return num_value_heads * value_head_dim; }
  // What a layer remembers of a sequence, however long it is: the matrices of its heads, kept in fp32, and the inputs
  // of the next convolution.
  int64_t memory_elements() const { return num_value_heads * key_head_dim * value_head_dim; }
  int64_t convolved_elements() const { return (conv_kernel - 1) * (2 * key_width() + value_width()); }
  double flops_per_token() const {
    return static_cast<double>(num_value_heads) * delta_rule_flops(key_head_dim, value_head_dim);
  }
  bool operator==(const LinearAttentionConfig&) const = default;
};

}  // namespace ranklab
