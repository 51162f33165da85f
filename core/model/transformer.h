// The decoder-only transformer of GPT-2 and Llama, cut over the tensor-parallel axis: RMSNorm or LayerNorm, RoPE or
// learned positions, MHA, GQA or MQA, SwiGLU or GELU, dropout, tied or untied head. Activations are [S, B, H] (sequence
// first, as in Megatron-LM, so that sequence parallelism cuts dim 0). Every layout starts from the same global weights
// and drops the same elements. A pipeline rank holds some stages: runs of layers, the embedding with the first and the
// final norm and the head with the last. Between stages travels the residual stream, one [S, B, H], sharded over tp
// with sequence parallelism. Parameters keep their global names. Thread rule: its rank's thread.
#pragma once
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/comm/rank_context.h"
#include "core/model/causal_lm.h"
#include "core/parallel/quantizer_book.h"
#include "core/spec/model_config.h"
#include "core/spec/recompute_policy.h"

namespace ranklab {

// Layers [first_layer, end_layer) as one pipeline stage.
struct StageLayers {
  int64_t first_layer = 0;
  int64_t end_layer = 0;
  bool is_first = false;  // embeds tokens
  bool is_last = false;   // predicts
};

struct TransformerOptions {
  bool sequence_parallel = false;  // no effect when tp is 1
  uint64_t seed = 1234;
  at::ScalarType dtype = at::kFloat;
  std::string moe_dispatcher = "alltoall";  // how tokens travel to their experts (dispatcher.h)
  RecomputePolicy recompute = {};
  QuantizationSettings quantization = {};  // of products; the default: all of them in `dtype`
  std::vector<StageLayers> stages = {};    // of this rank; empty: the whole model in one
  bool values_later = false;               // parameters have no memory until make_values() (initial_values.h)
};

// `context` outlives the model. Throws kInvalidArgument when the sizes do not fit the split (validate()).
std::unique_ptr<CausalLm> make_transformer(const ModelConfig& config, RankContext& context,
                                           const TransformerOptions& options);

}  // namespace ranklab
