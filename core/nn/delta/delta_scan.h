// From chunk to chunk of the gated delta rule (gated_delta_rule.h): what a head remembers goes through a sequence's
// chunks one after another, all else is products of all chunks at once.
//   written_n = u_n - w_n M_n;   out_n = q_n M_n + within_n written_n;   M_n+1 = decay_n M_n + k_n written_n
// Cost: two products a chunk in turn forward, three backward. Memory: M of every chunk. Legend: H heads of all
// sequences, N chunks, C positions each. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

namespace ranklab {

struct DeltaChunks {
  at::Tensor u;       // [H, N, C, Dv]
  at::Tensor w, q;    // [H, N, C, Dk]
  at::Tensor within;  // [H, N, C, C]
  at::Tensor k;       // [H, N, Dk, C]
  at::Tensor decay;   // [H, N, 1, 1]
};

// memory [H, Dk, Dv] before the first chunk, which then is that after the last -> [H, N, C, Dv]. No gradient reaches
// the memory.
at::Tensor delta_scan(const DeltaChunks& chunks, at::Tensor& memory);

}  // namespace ranklab
