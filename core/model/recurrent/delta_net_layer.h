// Gated DeltaNet in place of softmax attention (Yang et al. 2024, arXiv 2412.06464; Qwen3-Next): a projection, a short
// convolution, the gated delta rule, a gated norm of each head, and a projection. Heads are sharded over tp, and, for
// the convolution and the rule, over cp (recurrent_heads.h). Thread rule: its rank's thread.
#pragma once
#include <memory>

#include "core/model/attention_layer.h"

namespace ranklab {

std::unique_ptr<AttentionLayer> make_delta_net(const ModuleScope& scope, const ModelConfig& config,
                                               const AttentionContext& context);

}  // namespace ranklab
