// Multi-head latent attention of one transformer layer (DeepSeek-V2, arXiv 2405.04434, section 2.1; V3, arXiv
// 2412.19437): queries, and keys with values, each go through a narrow compressed vector with a norm of its own. The
// projections down are on every tensor-parallel rank, those up and the output are cut by heads. With sequence
// parallelism what is gathered are the compressed vectors, not the hidden states.
// Thread rule: its rank's thread.
#pragma once
#include <memory>

#include "core/model/attention_layer.h"

namespace ranklab {

// REQUIRES: config.mla.enabled(); place.rope of qk_pos_emb_head_dim, see yarn.h.
std::unique_ptr<AttentionLayer> make_latent_attention(const ModuleScope& scope, const ModelConfig& config,
                                                      const AttentionPlace& place);

}  // namespace ranklab
