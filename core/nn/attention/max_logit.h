// The largest attention logit of each head: the scores as the softmax sees them, scaled, capped and masked, sinks aside
// (Kimi K2, arXiv 2507.20534, section 2.1: S_max; Megatron-LM's --qk-clip and --log-max-attention-logit). Whoever wants
// it gives attention ScoreRule::max_logits, [heads] in the type in which scores are computed, which every forward but a
// recomputation raises in place: the host waits for nothing. Where scores are in memory their maximum is taken; a fused
// kernel knows the running maximum of each query, which ATen's do not hand out, so that plain operators multiply
// queries and keys again, some at a time, in 16 bits at the speed of a GPU's units for them. The virtual clock counts
// what a kernel that hands them out takes: charge_max_logits(). Memory: the scores of 128 queries and 2048 keys of all
// heads, on a GPU of up to 512 queries within 128 MiB. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/nn/attention/softmax_attention.h"
#include "core/spec/sequence_part.h"

namespace ranklab {

KeyBand causal_band(const ScoreRule& rule, int64_t seq);  // of a whole sequence

// in.q [B, heads, M, D], in.k [B, groups, N, D]; the i-th query sees keys i + band.first to i + band.last, as far as
// there are such.
void note_max_logits(const SoftmaxHeads& in, const KeyBand& band, const ScoreRule& rule);
// Scores [B, heads, M, N] that are there, hidden ones -infinity.
void note_scores(const at::Tensor& scores, const at::Tensor& max_logits);

// One number written for each query of each head, `queries` in all, and read once.
void charge_max_logits(const at::Tensor& max_logits, int64_t queries);

}  // namespace ranklab
