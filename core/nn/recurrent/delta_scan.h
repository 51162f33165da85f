// The recurrence from chunk to chunk of the gated delta rule (gated_delta_rule.h). A head's state M passes through a
// sequence's chunks one after another; everything else is computed by products for all chunks at once.
//   written_n = u_n - w_n M_n;   out_n = q_n M_n + within_n written_n;   M_n+1 = decay_n M_n + k_n written_n
// The last equation can also be written M_n+1 = (decay_n - k_n w_n) M_n + k_n u_n. Cost: two sequential products per
// chunk forward and three backward; or one each, with transition matrices computed beforehand for all chunks. Memory: M
// of every chunk; with one sequential product also the transition matrices. Legend: H heads of all sequences, N chunks,
// C positions each. Thread rule: its rank's thread.
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

// The products that are computed sequentially: two or three per chunk (kProducts), or one with a transition matrix
// (kTransitions). On a GPU launching a product takes about as long as the product itself, so it runs kTransitions, with
// about two and a half times the arithmetic; 1.6 of these 2.5 are for all chunks at once.
enum class DeltaLoop { kProducts, kTransitions };
DeltaLoop delta_loop(const at::Tensor& x);  // for the device of x

// `memory` [H, Dk, Dv] is the state before the first chunk, and on return the state after the last one. Returns [H, N,
// C, Dv]. No gradient flows to `memory`.
at::Tensor delta_scan(const DeltaChunks& chunks, at::Tensor& memory, DeltaLoop loop);

}  // namespace ranklab
