// Layers with linear attention, which summarize past tokens in a matrix of fixed size instead of keeping their keys and
// values, mixed with layers of softmax attention. The kind is Gated DeltaNet (Yang et al. 2024, arXiv 2412.06464),
// which Qwen3-Next uses in three of four layers. Settings are named as in Megatron-LM. Torch-free.
#pragma once
#include <cstdint>

#include "core/spec/layer_pattern.h"

namespace ranklab {

enum class LinearAttentionKind { kNone, kGatedDeltaNet };

// Positions per chunk; within a chunk the delta rule is computed with matrix products
// (core/nn/recurrent/gated_delta_rule.h).
constexpr int64_t kDeltaChunk = 64;

// Forward FLOPs for one position of one value head: its products with the keys of the chunk (only earlier ones: half of
// them on average), the triangular system, and reading and writing the state matrix.
constexpr double delta_rule_flops(int64_t key_dim, int64_t value_dim) {
  const auto k = static_cast<double>(key_dim), v = static_cast<double>(value_dim), c = static_cast<double>(kDeltaChunk);
  return 6 * k * v + c * (3 * k + 2 * v);
}

struct LinearAttentionConfig {
  LinearAttentionKind kind = LinearAttentionKind::kNone;
  // the layers with linear attention; the others keep softmax attention
  LayerPattern layers = {.skip_freq = 4, .pattern = {}};
  int64_t num_key_heads = 16;    // also the number of query heads
  int64_t num_value_heads = 32;  // num_value_heads / num_key_heads neighbours share a key head
  int64_t key_head_dim = 128;
  int64_t value_head_dim = 128;
  int64_t conv_kernel = 4;  // number of positions that the convolution of queries, keys and values reads

  bool enabled() const { return kind != LinearAttentionKind::kNone; }
  int64_t key_width() const { return num_key_heads * key_head_dim; }
  int64_t value_width() const { return num_value_heads * value_head_dim; }
  // What a layer keeps of a sequence, independent of its length: the state matrices of its heads, in fp32, and the
  // inputs that the next convolution needs.
  int64_t memory_elements() const { return num_value_heads * key_head_dim * value_head_dim; }
  int64_t convolved_elements() const { return (conv_kernel - 1) * (2 * key_width() + value_width()); }
  double flops_per_token() const {
    return static_cast<double>(num_value_heads) * delta_rule_flops(key_head_dim, value_head_dim);
  }
  bool operator==(const LinearAttentionConfig&) const = default;
};

}  // namespace ranklab
