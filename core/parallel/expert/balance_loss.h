// Load-balancing losses as sums over this rank's tokens (the caller's loss is also a sum, and is divided by the tokens
// of the global batch). Let f_i be E / (K N) times the number of tokens, among N, for which expert i has one of the K
// best scores, and P_i the mean over these N tokens of the scores normalized over experts. The losses are N times
//   aux  the sum of f_i P_i over the E experts (Switch, arXiv 2101.03961, eq. 4; per sequence: DeepSeek-V3,
//        arXiv 2412.19437, eq. 17 to 20). Only scores count, as there and in Megatron-LM: a bias that already moves
//        tokens to other experts, or groups that exclude experts, would hide from the router what it prefers
//   z    the mean square of the logits' log-sum-exp (ST-MoE, arXiv 2202.08906, eq. 5)
// f is a constant, so a rank needs only its own scores and the counts of all ranks: at most one small all_reduce per
// group, and the gradients of all ranks add up to those of one rank. Legend: T tokens of this rank ([S, B] positions;
// token t belongs to sequence t % B), E experts, K experts per token. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "core/comm/communicator.h"
#include "core/nn/router.h"
#include "core/spec/moe_config.h"

namespace ranklab {

struct BalanceGroups {
  // the groups over whose tokens counts are summed, by one all_reduce after the other
  std::vector<Communicator*> groups = {};
  int64_t ranks = 1;      // number of ranks in all groups together
  int64_t sequences = 1;  // B; with `per_sequence` the loss is computed per sequence
  bool per_sequence = false;
};

// Sum over this rank's tokens, differentiable; without the coefficient.
at::Tensor balance_loss_sum(const ExpertChoice& choice, const MoeConfig& config, const BalanceGroups& groups);
at::Tensor z_loss_sum(const at::Tensor& logits_TE);

// Returns x; backward also passes the gradient `scale` to `loss`.
at::Tensor attach_loss(const at::Tensor& x, const at::Tensor& loss, double scale);

}  // namespace ranklab
