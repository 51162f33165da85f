// Multi-token prediction (DeepSeek-V3, arXiv 2412.19437, section 2.2): module k (from 0), one transformer layer, reads
// at position i the hidden state of the model (or of module k - 1) and the embedding of token i + 1 + k, and predicts
// the token after that. Embedding and head are the main model's. As in vLLM, SGLang and Megatron-LM, the state is taken
// after the final norm, and the projection's columns are [embedding | state], the order of the published weights.
// With ModelConfig::mtp_use_repeated_layer (Megatron-Core), all modules have the parameters of module 0, whose gradient
// is the sum over all of them; statistics of its experts and of its attention logits cover all of them, too.
// Positions whose token or target lies past the end predict nothing. Learned position embeddings enter only through the
// state. The losses are computed in the same stage as the modules, or in a later pipeline stage that has the head.
// Cost: one more layer and head per module, in training only. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "core/model/block.h"
#include "core/model/output_head.h"
#include "core/parallel/tensor/replicated_linear.h"
#include "core/parallel/tensor/vocab_embedding.h"

namespace ranklab {

class MultiTokenPrediction {
 public:
  // `context`: the context for the blocks, whose `layer` is set here. `recompute`: backward recomputes them
  // (recompute.h). The embedding must outlive this object.
  MultiTokenPrediction(const ModuleScope& scope, const ModelConfig& config, const BlockContext& context,
                       const VocabParallelEmbedding& embedding, bool recompute = false);

  // Uses a module's state next to the module: each_state() returns the state itself wherever its loss is computed.
  using Use = std::function<void(int64_t ahead, const NormOutput& state)>;
  // state [S, B, H] after the final norm (this rank's positions). Calls use() for the state of each module, in order;
  // the first module has `ahead` 1.
  void each_state(const at::Tensor& state_SBH, const ForwardContext& context, const Use& use) const;

 private:
  struct Module {
    Norm embedding_norm, state_norm;
    ReplicatedLinear projection;
    TransformerBlock block;
    Norm norm;
    ModuleUse use;
  };
  NormOutput state_of(const Module& module, int64_t ahead, const at::Tensor& state_SBH,
                      const ForwardContext& context) const;

  TensorParallel tp_;
  const VocabParallelEmbedding& embedding_;
  bool recompute_;
  std::vector<Module> modules_;
};

// The sum of the token losses of the module that looks `ahead` tokens further.
at::Tensor mtp_loss_sum(const OutputHead& head, const NormOutput& state, int64_t ahead, const ForwardContext& context);

// Returns the value of `loss`, but backward also passes to `further` the gradient of `loss` times `weight`. So
// `further` is trained on without being part of the reported loss.
at::Tensor with_further_loss(const at::Tensor& loss, const at::Tensor& further, double weight);

}  // namespace ranklab
