// Causal self-attention on a fused QKV projection: MHA, GQA (Ainslie et al. 2023, arXiv 2305.13245) and MQA. The
// softmax part is the device's fused kernel, where it has one (softmax_attention.h), so memory is linear in S. Backward
// saves q, k, v, the output and the log-sum-exp of each query. Query head h reads key/value group h / (heads / groups).
// Legend: S sequence, B batch, D head dimension. Cost: 2 S^2 D B heads FLOPs forward (the causal half), 2.5 times that
// backward. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <cmath>

#include "core/nn/attention/softmax_attention.h"
#include "core/nn/recomputable_output.h"
#include "core/nn/rope.h"

namespace ranklab {

struct AttentionShape {
  int64_t heads = 1;  // of this rank
  int64_t groups = 1;
  int64_t head_dim = 0;
  int64_t window = 0;          // positions that a query attends to, including its own; 0: itself and all before it
  double scale = 0;            // of scores; 0: 1 / sqrt(head_dim)
  double cap = 0;              // soft cap on scores (tiled_attention.h); 0: none
  at::Tensor max_logits = {};  // ScoreRule::max_logits

  double score_scale() const { return scale > 0 ? scale : 1.0 / std::sqrt(static_cast<double>(head_dim)); }
  bool has_window(int64_t seq) const { return window > 0 && window < seq; }
};

// qkv [S, B, (heads + 2 groups) D], laid out [q heads | k groups | v groups] -> [S, B, heads D].
// sinks [heads] (attention_sinks.h); undefined: none.
at::Tensor causal_attention(const at::Tensor& qkv, const AttentionShape& shape, const RopeTable& rope,
                            const at::Tensor& sinks = {});
// The same, but it saves only qkv for backward, which recomputes the softmax part. For tensors without row kernels
// (kernel_path.h) everything is saved and nothing recomputed.
RecomputableOutput recomputable_causal_attention(const at::Tensor& qkv, const AttentionShape& shape,
                                                 const RopeTable& rope, const at::Tensor& sinks = {});
// The parts of causal_attention(), for attention over several ranks: the heads of qkv with queries and keys rotated,
// differentiable (q [B, heads, S, D], k and v [B, groups, S, D]); and the rule by which their scores are made.
SoftmaxHeads rotated_heads(const at::Tensor& qkv, const AttentionShape& shape, const RopeTable& rope);
ScoreRule score_rule(const AttentionShape& shape, const at::Tensor& sinks = {});
// The same in plain, differentiable ATen ops.
at::Tensor causal_attention_reference(const at::Tensor& qkv, const AttentionShape& shape, const RopeTable& rope,
                                      const at::Tensor& sinks = {});

}  // namespace ranklab
