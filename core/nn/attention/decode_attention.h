// Attention of new positions to themselves and to the positions in a KV cache, to which they are appended. Latent
// attention never materializes the keys and values of the past: the half of the up-projection that makes keys is
// multiplied into the queries, and the half that makes values into the output (DeepSeek-V2, arXiv 2405.04434, section
// 2.1.2, "absorbed"). Prefill of an empty cache takes the training path instead, which costs less for many positions at
// once. Cost: S (past + S) dot products per head. Forward only, under NoGradGuard. Legend: S new positions, B batch.
// Thread rule: its rank's thread.
#pragma once
#include "core/nn/attention/attention.h"
#include "core/nn/attention/attention_cache.h"
#include "core/nn/attention/latent_attention.h"

namespace ranklab {

// qkv [S, B, (heads + 2 groups) D], as for causal_attention() -> [S, B, heads D]. sinks [heads], or undefined.
// REQUIRES: the cache has room for S more positions.
at::Tensor decode_attention(const at::Tensor& qkv, const AttentionShape& shape, const RopeTable& rope,
                            AttentionCache& cache, const at::Tensor& sinks = {});

struct LatentQuery {
  at::Tensor q;           // [S, B, heads (nope + rope)]
  at::Tensor compressed;  // [S, B, kv_lora]
  at::Tensor k_rope;      // [S, B, rope]
  at::Tensor kv_up;       // weight [heads (nope + v), kv_lora] of this rank
  at::Tensor kv_up_bias;  // [heads (nope + v)], or undefined
};

// -> [S, B, heads v]
at::Tensor decode_latent_attention(const LatentQuery& in, const LatentShape& shape, const RopeTable& rope,
                                   AttentionCache& cache, const at::Tensor& sinks = {});

}  // namespace ranklab
