// The kernels and collectives of a mixture of experts (core/model/moe_layer.cpp): router, dispatch (dispatch_walk.h),
// two grouped products, combine, shared experts; all experts get equally many tokens. Over etp the rows are gathered
// before the experts and reduced after, and the same pair backward. Thread rule: one thread.
#pragma once
#include "core/plan/layer_walk.h"

namespace ranklab {

void experts_forward(LayerWalk& walk);
void experts_backward(LayerWalk& walk);

}  // namespace ranklab
