// The kernels and collectives of a layer's attention: one projection to queries, keys and values, or latent attention's
// three (core/nn/latent_attention.h), the softmax part as one kernel, and the projection back. Thread rule: one thread.
#pragma once
#include "core/plan/layer_walk.h"

namespace ranklab {

void attention_forward(LayerWalk& walk);
void attention_backward(LayerWalk& walk);

}  // namespace ranklab
