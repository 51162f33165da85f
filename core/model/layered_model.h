// A language model made of a stack of layers (layer_stack.h). A pipeline rank holds some of its stages: consecutive
// layers, with the embedding in the first stage and the head in the last. Stages send each other the residual stream,
// one [S, B, H], sharded over tp with sequence parallelism. Parameters keep their global names, and every layout starts
// from the same global weights and drops the same elements. Thread rule: its rank's thread.
#pragma once
#include <functional>
#include <memory>

#include "core/model/layer_stack.h"
#include "core/spec/model_config.h"

namespace ranklab {

using MakeStack = std::function<std::unique_ptr<LayerStack>(const StackContext&)>;

// Of `config` it reads only the number of layers, hidden size, sequence length and dropout. `context` must outlive the
// model.
std::unique_ptr<CausalLm> make_layered_model(const ModelConfig& config, RankContext& context,
                                             const LayeredOptions& options, const MakeStack& make);

}  // namespace ranklab
