// Configuration of a mixture of experts in place of the MLP (Switch: arXiv 2101.03961; DeepSeekMoE: arXiv 2401.06066;
// DeepSeek-V3: arXiv 2412.19437, section 2.1.2): routed experts, topk of which process each token, and shared experts
// that process every token. Torch-free.
#pragma once
#include <cstdint>

#include "core/spec/layer_pattern.h"

namespace ranklab {

enum class RouterScore { kSoftmax, kSigmoid };
// The tokens over which an auxiliary loss balances: a data-parallel rank's microbatch, each sequence separately, or the
// microbatches of all data-parallel ranks together.
enum class LoadBalancing { kNone, kAuxLoss, kSeqAuxLoss, kGlobalAuxLoss };

struct MoeConfig {
  int64_t num_experts = 0;  // 0: dense
  int64_t topk = 2;
  int64_t ffn_hidden_size = 0;  // of an expert; 0: the model's
  // Width of what routed experts read and write: projected down before tokens are sent, up again after their sum
  // (LatentMoE, as in Nemotron 3). 0: the hidden state itself.
  int64_t latent_size = 0;
  int64_t shared_ffn_hidden_size = 0;  // of all shared experts together; 0: none
  bool shared_gate = false;            // multiply their output by the sigmoid of a per-token gate (Qwen2-MoE)
  int64_t first_dense_layers = 0;      // layers that keep a dense MLP
  LayerPattern layers = {};            // of the layers behind them, those that have experts; the others keep theirs

  RouterScore score = RouterScore::kSoftmax;
  int64_t num_groups = 1;  // groups of experts, of which ...
  int64_t group_topk = 1;  // ... a token may use this many: those with the largest sum of their two best scores
  bool normalize_topk = true;
  bool normalize_top1 = false;  // also with topk 1: the weight is 1, and only the auxiliary losses train the router
  bool router_bias = false;     // added to the logits (gpt-oss)
  double scaling_factor = 1.0;  // multiplies the weights, after normalization
  bool weigh_inputs = false;    // the weight of a token's one expert multiplies what the expert reads (Llama 4)

  LoadBalancing balancing = LoadBalancing::kNone;
  double aux_loss_coeff = 0.0;
  double z_loss_coeff = 0.0;  // ST-MoE, arXiv 2202.08906
  // Auxiliary-loss-free balancing (arXiv 2408.15664): a bias that only affects the choice of experts, changed after
  // each step by `bias_update_rate` in favour of the experts that got too few tokens.
  bool expert_bias = false;
  double bias_update_rate = 1e-3;
  double capacity_factor = 0.0;  // maximum tokens of an expert, relative to the mean; 0: none are dropped
  bool force_balance = false;    // debugging: token t goes to experts t k, t k + 1, ... whatever the scores

  bool enabled() const { return num_experts > 0; }
  bool normalizes() const { return normalize_topk && (topk > 1 || normalize_top1); }
  bool operator==(const MoeConfig&) const = default;
};

}  // namespace ranklab
