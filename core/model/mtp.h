// Multi-token prediction (DeepSeek-V3, arXiv 2412.19437, section 2.2): module k (from 0), one transformer layer, reads
// at position i the hidden state of the model (or of module k - 1) and the embedding of token i + 1 + k, and predicts
// the token after that. Embedding and head are the main model's. As in vLLM, SGLang and Megatron-LM, the state is taken
// after the final norm, and the projection's columns are [embedding | state], the order of the published weights.
// Positions whose token or target lies past the end predict nothing. Learned position embeddings enter only through the
// state.
// Cost: one more layer and head per module, in training only. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "core/model/block.h"
#include "core/model/output_head.h"
#include "core/parallel/tensor/replicated_linear.h"
#include "core/parallel/tensor/vocab_embedding.h"

namespace ranklab {

class MultiTokenPrediction {
 public:
  // `context`: for the blocks, whose `layer` is set here; `recompute`: backward recomputes them (recompute.h).
  // Embedding and head must outlive this.
  MultiTokenPrediction(const ModuleScope& scope, const ModelConfig& config, const BlockContext& context,
                       const VocabParallelEmbedding& embedding, const OutputHead& head, bool recompute = false);

  // state [S, B, H] after the final norm (this rank's positions) -> the sum of the token losses of all modules.
  at::Tensor loss_sum(const at::Tensor& state_SBH, const ForwardContext& context) const;

 private:
  struct Module {
    Norm embedding_norm, state_norm;
    ReplicatedLinear projection;
    TransformerBlock block;
    Norm norm;
    ModuleUse use;
  };
  // -> the sum of the module's token losses, and its state for the next one.
  at::Tensor predict(const Module& module, int64_t ahead, at::Tensor& state_SBH, const ForwardContext& context) const;

  TensorParallel tp_;
  const VocabParallelEmbedding& embedding_;
  const OutputHead& head_;
  bool recompute_;
  std::vector<Module> modules_;
};

// Returns the value of `loss`; backward also gives `further` the gradient of `loss` times `weight`. Thus `further` is
// trained on but not part of the reported loss.
at::Tensor with_further_loss(const at::Tensor& loss, const at::Tensor& further, double weight);

}  // namespace ranklab
