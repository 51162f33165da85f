// One layer's KV cache, so that the next token costs one position (Shazeer 2019, arXiv 1911.02150, for why its bytes
// matter); with latent attention, the compressed vectors and the rotated key part that all heads share (DeepSeek-V2,
// arXiv 2405.04434, section 2.1.2); with linear attention, what it remembers. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace ranklab {

struct AttentionCache {
  at::Tensor keys;        // [B, groups, capacity, D] of this rank; latent attention: [B, 1, capacity, kv_lora + rope]
  at::Tensor values;      // [B, groups, capacity, D]; latent attention: undefined, the first kv_lora columns of keys
  int64_t positions = 0;  // tokens seen so far; without a window the cache holds all of them
  // The number of positions that a query sees, including its own; the cache holds the last window - 1, in order. 0:
  // all.
  int64_t window = 0;
  int64_t chunk = 0;  // positions attend within chunks of so many; 0: there are none. The cache's window is at most it.
  // Of linear attention, which has no keys and values: the inputs that the next convolution sees [K - 1, B, C], and the
  // matrices of its heads [B, Hv, Dk, Dv] (core/nn/recurrent).
  at::Tensor convolved = {}, memory = {};

  int64_t capacity() const { return keys.size(2); }
  // For one sequence.
  int64_t bytes_per_token() const {
    if (!keys.defined()) return 0;  // as many bytes for any number of tokens
    const int64_t elements = keys.size(1) * (keys.size(3) + (values.defined() ? values.size(3) : 0));
    return elements * static_cast<int64_t>(keys.itemsize());
  }
};

}  // namespace ranklab
