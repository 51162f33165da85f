// Configuration of a mixture of experts in place of the MLP (Switch: arXiv 2101.03961; DeepSeekMoE: arXiv 2401.06066;
// DeepSeek-V3: arXiv 2412.19437, section 2.1.2): routed experts, topk of which process each token, and shared experts
// that process every token. Torch-free.
#pragma once
#include <cstdint>

#include "core/spec/layer_pattern.h"

namespace ranklab {

enum class RouterScore { kSoftmax, kSigmoid };
// The tokens over which an auxiliary loss balances the load: one microbatch of one data-parallel rank, each sequence
// separately, or the microbatches of all data-parallel ranks together.
enum class LoadBalancing { kNone, kAuxLoss, kSeqAuxLoss, kGlobalAuxLoss };

struct MoeConfig {
  int64_t num_experts = 0;  // 0: dense
  int64_t topk = 2;
  int64_t ffn_hidden_size = 0;  // width of an expert's MLP; 0: the model's ffn_hidden_size
  // The width that routed experts read and write: tokens are projected down before they are sent, and up again after
  // the sum over experts (LatentMoE, as in Nemotron 3). 0: the hidden size, without projections.
  int64_t latent_size = 0;
  int64_t shared_ffn_hidden_size = 0;  // of all shared experts together; 0: none
  bool shared_gate = false;            // multiply their output by the sigmoid of a per-token gate (Qwen2-MoE)
  int64_t first_dense_layers = 0;      // the number of layers at the beginning that keep a dense MLP
  LayerPattern layers = {};            // which of the later layers have experts; the others keep a dense MLP

  RouterScore score = RouterScore::kSoftmax;
  int64_t num_groups = 1;  // number of groups of experts ...
  int64_t group_topk = 1;  // ... and how many of them a token may use: those with the largest scores
  // A group's score is the sum of its best experts' scores, this many (DeepSeek-V3 two, DeepSeek-V2 one, Megatron-LM
  // topk / group_topk).
  int64_t group_best = 2;
  bool normalize_topk = true;
  // also with topk 1, where the weight becomes 1 and only the auxiliary losses train the router
  bool normalize_top1 = false;
  bool router_bias = false;     // added to the logits (gpt-oss)
  double scaling_factor = 1.0;  // multiplies the weights, after normalization
  // with topk 1: a token's weight multiplies the expert's input instead of its output (Llama 4)
  bool weigh_inputs = false;

  LoadBalancing balancing = LoadBalancing::kNone;
  double aux_loss_coeff = 0.0;
  double z_loss_coeff = 0.0;  // ST-MoE, arXiv 2202.08906
  // Auxiliary-loss-free balancing (arXiv 2408.15664): a bias that affects only the choice of experts. After each step
  // it is changed by `bias_update_rate` in favour of the experts that received too few tokens.
  bool expert_bias = false;
  double bias_update_rate = 1e-3;
  double capacity_factor = 0.0;  // maximum tokens of an expert, relative to the mean; 0: none are dropped
  bool force_balance = false;    // debugging: token t goes to experts t k, t k + 1, ... whatever the scores

  bool enabled() const { return num_experts > 0; }
  bool limits_groups() const { return group_topk < num_groups; }
  bool normalizes() const { return normalize_topk && (topk > 1 || normalize_top1); }
  bool operator==(const MoeConfig&) const = default;
};

}  // namespace ranklab
