// The KV cache of a model: one cache per layer. Memory: bytes_per_token() times sequences times capacity (with a
// sliding window: times window - 1, if that is smaller), allocated at once. Thread rule: its rank's thread.
#pragma once
#include <cstdint>
#include <vector>

#include "core/nn/attention/attention_cache.h"

namespace ranklab {

struct DecodeCache {
  std::vector<AttentionCache> layers;
  int64_t sequences = 0;
  int64_t capacity = 0;   // positions of each sequence
  int64_t positions = 0;  // positions in the cache so far

  void clear() {
    positions = 0;
    for (AttentionCache& layer : layers) layer.positions = 0;
  }
  // On this rank, per token of one sequence.
  int64_t bytes_per_token() const {
    int64_t bytes = 0;
    for (const AttentionCache& layer : layers) bytes += layer.bytes_per_token();
    return bytes;
  }
};

}  // namespace ranklab
