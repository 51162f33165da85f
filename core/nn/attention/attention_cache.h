// One layer's KV cache, so that generating the next token only computes one position (Shazeer 2019, arXiv 1911.02150,
// on why its bytes matter). With latent attention it holds the compressed vectors and the rotated part of the key that
// all heads share (DeepSeek-V2, arXiv 2405.04434, section 2.1.2); with linear attention it holds the recurrent state.
// Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace ranklab {

struct AttentionCache {
  at::Tensor keys;  // [B, groups, capacity, D], this rank's groups; latent attention: [B, 1, capacity, kv_lora + rope]
  // [B, groups, capacity, D]; latent attention: undefined, values are the first kv_lora columns of keys
  at::Tensor values;
  int64_t positions = 0;  // tokens seen so far; without a window the cache holds all of them
  // The number of positions that a query attends to, including its own; the cache then holds the last window - 1
  // positions, in order. 0: all.
  int64_t window = 0;
  // Positions attend only within chunks of this many; 0: no chunks. With chunks, `window` is at most `chunk`.
  int64_t chunk = 0;
  // For linear attention, which has no keys and values: the inputs that the next convolution reads [K - 1, B, C], and
  // the state matrices of its heads [B, Hv, Dk, Dv] (core/nn/recurrent).
  at::Tensor convolved = {}, memory = {};

  int64_t capacity() const { return keys.size(2); }
  // Per token of one sequence.
  int64_t bytes_per_token() const {
    if (!keys.defined()) return 0;  // linear attention: the size does not depend on the number of tokens
    const int64_t elements = keys.size(1) * (keys.size(3) + (values.defined() ? values.size(3) : 0));
    return elements * static_cast<int64_t>(keys.itemsize());
  }
};

}  // namespace ranklab
