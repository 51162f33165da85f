// Load-balancing losses as sums over this rank's tokens (the caller's loss is a sum, too, and divides by the tokens of
// the global batch). With f_i = E / (K N) x the tokens among N of whose K best scores one is of expert i, and P_i the
// mean over them of the scores normalized over experts, they are N times
//   aux  the sum of f_i P_i over the E experts (Switch, arXiv 2101.03961, eq. 4; per sequence: DeepSeek-V3,
//        arXiv 2412.19437, eq. 17 to 20). By their scores alone, as there and in Megatron-LM: a bias that already moves
//        tokens to other experts, or groups that keep them away, would hide from the router what it prefers
//   z    the mean square of the logits' log-sum-exp (ST-MoE, arXiv 2202.08906, eq. 5)
// f is a constant, so a rank needs only its own scores and the counts of all: at most one small all_reduce per group,
// and the gradients of all ranks add up to those of one rank. Legend: T tokens of this rank ([S, B] positions; token t
// belongs to sequence t % B), E experts, K experts per token. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "core/comm/communicator.h"
#include "core/nn/router.h"
#include "core/spec/moe_config.h"

namespace ranklab {

struct BalanceGroups {
  std::vector<Communicator*> groups = {};  // their tokens are counted together: one all_reduce after the other
  int64_t ranks = 1;                       // number of ranks in all groups together
  int64_t sequences = 1;                   // B; with `per_sequence` the loss is computed per sequence
  bool per_sequence = false;
};

// Sum over this rank's tokens, differentiable; without the coefficient.
at::Tensor balance_loss_sum(const ExpertChoice& choice, const MoeConfig& config, const BalanceGroups& groups);
at::Tensor z_loss_sum(const at::Tensor& logits_TE);

// Returns x; backward also gives `loss` the gradient `scale`.
at::Tensor attach_loss(const at::Tensor& x, const at::Tensor& loss, double scale);

}  // namespace ranklab
