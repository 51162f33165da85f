// The multi-head latent attention of one transformer layer (DeepSeek-V2, arXiv 2405.04434, section 2.1; V3, arXiv
// 2412.19437): queries, and keys with values, each go through a low-rank compressed vector with its own norm. The
// down-projections are replicated over tp, the up-projections and the output are sharded by heads. Sequence parallelism
// gathers the compressed vectors, not the hidden states. Thread rule: its rank's thread.
#pragma once
#include <memory>

#include "core/model/attention_layer.h"

namespace ranklab {

// REQUIRES: config.mla.enabled(); context.rope was made for qk_pos_emb_head_dim, see yarn.h.
std::unique_ptr<AttentionLayer> make_latent_attention(const ModuleScope& scope, const ModelConfig& config,
                                                      const AttentionContext& context);

}  // namespace ranklab
