// Multi-token prediction (DeepSeek-V3, arXiv 2412.19437, section 2.2): module k, one transformer layer, sees at
// position i the state of the model (or of module k - 1) there and the embedding of token i + 1 + k, and predicts the
// token after that; k counts from 0. Embedding and head are the main model's. As in vLLM, SGLang and Megatron-LM, the
// state is taken behind the final norm, and the projection's columns are [embedding | state], the order of the
// published weights. Positions whose token or target lies past the end predict nothing. With learned positions only the
// state has them.
// Cost: a layer and a head more for each module, in training only. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "core/model/block.h"
#include "core/model/output_head.h"
#include "core/parallel/replicated_linear.h"
#include "core/parallel/vocab_embedding.h"

namespace ranklab {

class MultiTokenPrediction {
 public:
  // `place`: of the blocks, but for numbers; `again`: they are computed again in backward (recompute.h).
  // Embedding and head outlive this.
  MultiTokenPrediction(const ModuleScope& scope, const ModelConfig& config, const BlockPlace& place,
                       const VocabParallelEmbedding& embedding, const OutputHead& head, bool again = false);

  // state [S, B, H] behind the final norm (this rank's positions) -> the sum of the token losses of all modules.
  at::Tensor loss_sum(const at::Tensor& state_SBH, const ForwardContext& context) const;

 private:
  struct Module {
    Norm embedding_norm, state_norm;
    ReplicatedLinear projection;
    TransformerBlock block;
    Norm norm;
  };

  TensorParallel tp_;
  const VocabParallelEmbedding& embedding_;
  const OutputHead& head_;
  bool again_;
  std::vector<Module> modules_;
};

// `loss` by value; backward gives `further` the gradient of `loss` times `weight`. So a loss that is reported alone
// trains with others.
at::Tensor with_further_loss(const at::Tensor& loss, const at::Tensor& further, double weight);

}  // namespace ranklab
