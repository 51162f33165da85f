// A language model made of a stack of layers (layer_stack.h). A pipeline rank holds some stages: runs of layers, the
// embedding with the first, the head with the last. Between stages travels the residual stream, one [S, B, H], sharded
// over tp with sequence parallelism. Parameters keep their global names, and every layout starts from the same global
// weights and drops the same elements. Thread rule: its rank's thread.
#pragma once
#include <functional>
#include <memory>

#include "core/model/layer_stack.h"
#include "core/spec/model_config.h"

namespace ranklab {

using MakeStack = std::function<std::unique_ptr<LayerStack>(const StackPlace&)>;

// Of `config` it reads the number of layers, the hidden size, the sequence length and the dropout; `context` outlives
// the model.
std::unique_ptr<CausalLm> make_layered_model(const ModelConfig& config, RankContext& context,
                                             const LayeredOptions& options, const MakeStack& make);

}  // namespace ranklab
