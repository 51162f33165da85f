// What one layer keeps of a microbatch for its backward, as a paper counts it: the GPT block of Korthikanti et al. 2022
// (arXiv 2205.05198, table 2 and section 5), with 2 bytes per activation, 1 byte per dropout mask element, and
// attention with its matrix of scores. s positions, b sequences, h hidden, a heads, t tensor-parallel ranks.
//   none       t = 1: s b h (34 + 5 a s / h); tp alone: s b h (10 + 24 / t + 5 a s / (h t)); with sequence parallelism
//              s b h / t (34 + 5 a s / h)
//   selective  the same without the scores' 5 a s / h
//   full       2 s b h, the layer's input (with sequence parallelism and its input sharded / t)
// Torch-free. Thread rule: pure.
#pragma once
#include <cstdint>

#include "core/spec/model_config.h"
#include "core/spec/recompute_policy.h"

namespace ranklab {

// Bytes on one rank, for a microbatch of `sequences`.
inline double paper_layer_bytes(const ModelConfig& m, int64_t sequences, int tensor_ranks, bool sequence_parallel,
                                Recompute granularity) {
  const auto tokens = static_cast<double>(sequences * m.seq_length);
  const auto hidden = static_cast<double>(m.hidden_size);
  const double t = tensor_ranks, sbh = tokens * hidden;
  const double scores = granularity == Recompute::kNone ? 5.0 * static_cast<double>(m.num_attention_heads) *
                                                              static_cast<double>(m.seq_length) / hidden
                                                        : 0.0;
  const bool sharded = sequence_parallel && tensor_ranks > 1;
  if (granularity == Recompute::kFull) return 2 * sbh / (sharded ? t : 1);
  return sharded ? sbh / t * (34 + scores) : sbh * (10 + 24 / t + scores / t);
}

}  // namespace ranklab
