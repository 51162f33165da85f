// The decoder-only transformer of GPT-2 and Llama as a stack of layers (layer_stack.h), sharded over tensor
// parallelism: RMSNorm or LayerNorm, RoPE or learned positions, MHA, GQA or MQA, SwiGLU or GELU, dropout, tied or
// untied head, experts. Activations are [S, B, H] (sequence first, as in Megatron-LM, so that sequence parallelism
// shards dim 0). Thread rule: its rank's thread.
#pragma once
#include <memory>

#include "core/model/layered_model.h"

namespace ranklab {

// `context` must outlive the model. Throws kInvalidArgument if the sizes do not divide over the ranks (validate()).
std::unique_ptr<CausalLm> make_transformer(const ModelConfig& config, RankContext& context,
                                           const LayeredOptions& options);

}  // namespace ranklab
