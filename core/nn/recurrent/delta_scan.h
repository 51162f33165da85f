// From chunk to chunk of the gated delta rule (gated_delta_rule.h): what a head remembers goes through a sequence's
// chunks one after another, all else is products of all chunks at once.
//   written_n = u_n - w_n M_n;   out_n = q_n M_n + within_n written_n;   M_n+1 = decay_n M_n + k_n written_n
// which is M_n+1 = (decay_n - k_n w_n) M_n + k_n u_n, too. Cost: two products a chunk in turn forward, three backward;
// or one each, of matrices that are made for all chunks before. Memory: M of every chunk; in turn of one product the
// matrices, too. Legend: H heads of all
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

// What is computed in turn. A GPU takes about as long to launch a product as for the product: it runs the fewest, with
// about two and a half times the arithmetic, 1.6 of which is of all chunks at once.
enum class DeltaLoop { kProducts, kTransitions };
DeltaLoop delta_loop(const at::Tensor& x);  // of x's device

// memory [H, Dk, Dv] before the first chunk, which then is that after the last -> [H, N, C, Dv]. No gradient reaches
// the memory.
at::Tensor delta_scan(const DeltaChunks& chunks, at::Tensor& memory, DeltaLoop loop);

}  // namespace ranklab
