// The kernels and collectives of a mixture of experts (core/model/moe_layer.cpp): router, counts, dispatch, two grouped
// products, combine, weighted sum, shared experts; all experts get equally many tokens. e bytes an element, h hidden,
// T_l tokens of a rank:
//   dispatch, combine and their gradients, each an all_to_all over ep of T_l topk h e, of which (ep-1)/ep leave the
//   rank (GShard, arXiv 2006.16668; Megatron-Core, arXiv 2504.14960) etp gathers the rows before the experts and
//   reduces them after, and the same pair backward
// Thread rule: one thread.
#pragma once
#include "core/plan/layer_walk.h"

namespace ranklab {

void experts_forward(LayerWalk& walk);
void experts_backward(LayerWalk& walk);

}  // namespace ranklab
