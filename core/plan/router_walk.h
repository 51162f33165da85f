// The kernels and collectives of a mixture's router (core/nn/router.h, core/parallel/expert/balance_loss.h,
// capacity.h): one product, then many small kernels on a score an expert and token. Its product with the weight stands
// in B, where autograd makes it. Thread rule: one thread.
#pragma once
#include "core/plan/layer_walk.h"

namespace ranklab {

void router_forward(LayerWalk& walk);
void router_backward(LayerWalk& walk);

}  // namespace ranklab
