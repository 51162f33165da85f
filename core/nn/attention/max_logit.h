// The largest attention logit of each head: scores as the softmax sees them, scaled, capped and masked, but without
// sinks (Kimi K2, arXiv 2507.20534, section 2.1: S_max; Megatron-LM's --qk-clip and --log-max-attention-logit). A
// caller that needs it passes ScoreRule::max_logits, [heads] in the type in which scores are computed; every forward
// except a recomputation raises it in place, so the host never waits. Where scores are in memory, their maximum is
// taken. A fused kernel knows the running maximum of each query, but ATen's kernels do not return it; so plain ops
// multiply queries and keys again, part by part (16-bit operands on a GPU's tensor cores). The virtual clock is charged
// for a kernel that does return the maxima: charge_max_logits(). Memory: the scores of 128 queries and 2048 keys of all
// heads; on a GPU up to 512 queries, within 128 MiB. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/nn/attention/softmax_attention.h"
#include "core/spec/sequence_part.h"

namespace ranklab {

KeyBand causal_band(const ScoreRule& rule, int64_t seq);  // for a whole sequence

// in.q [B, heads, M, D], in.k [B, groups, N, D]. Query i attends to keys i + band.first to i + band.last, as far as
// they exist.
void note_max_logits(const SoftmaxHeads& in, const KeyBand& band, const ScoreRule& rule);
// For scores [B, heads, M, N] that are in memory; masked scores are -infinity.
void note_scores(const at::Tensor& scores, const at::Tensor& max_logits);

// Charges the virtual clock for writing one number per query and head, `queries` in all, and reading it once.
void charge_max_logits(const at::Tensor& max_logits, int64_t queries);

}  // namespace ranklab
