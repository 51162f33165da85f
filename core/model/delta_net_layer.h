// Gated DeltaNet in the place of softmax attention (Yang et al. 2024, arXiv 2412.06464; Qwen3-Next): a projection, a
// short convolution, the gated delta rule, a gated norm of each head, a projection. Heads are sharded over tp. Under
// context parallelism heads change places with positions around the convolution and the rule, which need whole
// sequences, whatever the exchange of other layers: two all_to_alls each way. Packed documents that attend apart
// neither convolve nor remember each other. Thread rule: its rank's thread.
#pragma once
#include <memory>

#include "core/model/attention_layer.h"

namespace ranklab {

std::unique_ptr<AttentionLayer> make_delta_net(const ModuleScope& scope, const ModelConfig& config,
                                               const AttentionContext& context);

}  // namespace ranklab
