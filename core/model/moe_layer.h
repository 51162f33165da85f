// A mixture of experts in place of an MLP (DeepSeekMoE, arXiv 2401.06066; DeepSeek-V3, arXiv 2412.19437, 2.1.2): a
// router picks topk experts for each of this rank's tokens, a dispatcher sends the tokens to the ranks that own these
// experts and back, and shared experts see every token, optionally with a gate (Qwen2-MoE, arXiv 2407.10671: their
// output times sigmoid(gate . x), in fp32 like the router's scores). Routed experts may read and write a narrower
// projection of the tokens, which is then what is sent between ranks (LatentMoE, as in Nemotron 3). With tensor
// parallelism each rank routes its own positions, so sequence parallelism is required. Legend: S positions of this
// rank, B sequences, H hidden, T = S B tokens (t = s B + b), E experts. Thread rule: its rank's thread.
#pragma once
#include <memory>
#include <string>

#include "core/comm/rank_context.h"
#include "core/model/expert_book.h"
#include "core/model/mlp_layer.h"
#include "core/parallel/context/context_parallel.h"
#include "core/parallel/expert/dispatcher.h"

namespace ranklab {

struct LayeredOptions;

// What all MoE layers of a model share. The rank context must outlive it.
struct MoeContext {
  RankContext& rank_context;
  std::unique_ptr<TokenDispatcher> dispatcher;
  ExpertBook book;
  TensorPrecision wire;  // precision of tokens sent to experts
  bool overlap_shared;   // compute shared experts while tokens are sent to the others
  bool delay_weight_grads;
  bool pad;  // experts to their capacity, where they have one

  MoeContext(const ModelConfig& config, RankContext& rank, const LayeredOptions& options);
};

// `layer`: its index in the model, for the statistics in MoeContext::book.
std::unique_ptr<MlpLayer> make_moe_layer(const ModuleScope& scope, const ModelConfig& config, int64_t layer,
                                         MoeContext& context, TensorParallel tp, ContextParallel cp);

}  // namespace ranklab
