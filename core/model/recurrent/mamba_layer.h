// Mamba-2 in place of attention (Dao and Gu 2024, arXiv 2405.21060, section 7; Nemotron-H): a projection, a short
// convolution, the recurrence of a state space, a gated norm of each group of heads, and a projection. Groups with
// their heads are sharded over tp, and, for the convolution and the recurrence, over cp (recurrent_heads.h). Thread
// rule: its rank's thread.
#pragma once
#include <memory>

#include "core/model/attention_layer.h"

namespace ranklab {

std::unique_ptr<AttentionLayer> make_mamba(const ModuleScope& scope, const ModelConfig& config,
                                           const AttentionContext& context);

}  // namespace ranklab
