// Causal multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1), the part between its projections.
// The first `nope` elements of a query or key are per head and not rotated; the `rope` elements after them are rotated,
// and all heads share those of the key. Rotation follows the halves convention of rope.h. (The published weights rotate
// neighbouring elements: their row 2i is row i here, and row 2i + 1 is row i + rope / 2.) The softmax part is computed
// by softmax_attention.h, where keys and values must have the same width: values narrower than keys are padded with
// zeros. Backward saves the inputs, from which it rebuilds the keys, and also the output and the log-sum-exp of each
// query. Tensors without row kernels use ATen's scaled_dot_product_attention. Legend: S sequence, B batch. Cost: S^2 B
// heads (nope + rope + v) FLOPs forward (the causal half), about 2.5 times that backward. Thread rule: its rank's
// thread.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/nn/attention/softmax_attention.h"
#include "core/nn/recomputable_output.h"
#include "core/nn/rope.h"

namespace ranklab {

struct LatentShape {
  int64_t heads = 1;  // of this rank
  int64_t nope = 0;
  int64_t rope = 0;
  int64_t v = 0;
  double softmax_scale = 1;
  int64_t window = 0;          // AttentionShape::window
  double cap = 0;              // AttentionShape::cap
  at::Tensor max_logits = {};  // ScoreRule::max_logits

  int64_t query_head() const { return nope + rope; }
};

struct LatentInput {
  at::Tensor q;       // [S, B, heads (nope + rope)], a head [nope | rope]
  at::Tensor kv;      // [S, B, heads (nope + v)], a head [nope | v]
  at::Tensor k_rope;  // [S, B, rope]
};

// Returns [S, B, heads v]. `rope` has S positions or more; undefined: no rotation (learned positions). sinks [heads]
// (attention_sinks.h); undefined: none.
at::Tensor latent_attention(const LatentInput& input, const LatentShape& shape, const RopeTable& rope,
                            const at::Tensor& sinks = {});
// The same, but it saves only the inputs; backward recomputes the output (where there are row kernels).
RecomputableOutput recomputable_latent_attention(const LatentInput& input, const LatentShape& shape,
                                                 const RopeTable& rope, const at::Tensor& sinks = {});
// The parts of latent_attention(), for attention over several ranks: differentiable heads [B, heads, S, D], where D is
// the larger of the widths of keys and values and the narrower is padded with zeros; and the rule by which their scores
// are made.
SoftmaxHeads latent_heads(const LatentInput& input, const LatentShape& shape, const RopeTable& rope);
// Queries and keys separately, for keys at other positions than the queries. `k_rope`: the result of rotated_keys().
at::Tensor latent_queries(const at::Tensor& q, const LatentShape& shape, const RopeTable& rope);
struct LatentKeys {
  at::Tensor k, v;
};
LatentKeys latent_keys(const at::Tensor& kv, const at::Tensor& k_rope, const LatentShape& shape);
at::Tensor rotated_keys(const at::Tensor& k_rope, const RopeTable& rope);  // [S, B, D] -> [S, B, D]
ScoreRule score_rule(const LatentShape& shape, const at::Tensor& sinks = {});
// The same in plain, differentiable ATen ops.
at::Tensor latent_attention_reference(const LatentInput& input, const LatentShape& shape, const RopeTable& rope,
                                      const at::Tensor& sinks = {});

}  // namespace ranklab
