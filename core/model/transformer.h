// The decoder-only transformer of GPT-2 and Llama, cut over the tensor-parallel axis: RMSNorm or LayerNorm, RoPE or
// learned positions, MHA, GQA or MQA, SwiGLU or GELU, dropout, tied or untied head. Activations are [S, B, H] (sequence
// first, as in Megatron-LM, so that sequence parallelism cuts dim 0). Every layout starts from the same global weights
// and drops the same elements. Thread rule: its rank's thread.
#pragma once
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <memory>

#include "core/comm/rank_context.h"
#include "core/model/causal_lm.h"
#include "core/model/model_config.h"

namespace ranklab {

struct TransformerOptions {
  bool sequence_parallel = false;  // no effect when tp is 1
  uint64_t seed = 1234;
  at::ScalarType dtype = at::kFloat;
};

// `context` outlives the model. Throws kInvalidArgument when the sizes do not fit the split (validate()).
std::unique_ptr<CausalLm> make_transformer(const ModelConfig& config, RankContext& context,
                                           const TransformerOptions& options);

}  // namespace ranklab
