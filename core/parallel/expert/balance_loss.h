// Losses that keep experts equally busy, as sums over this rank's tokens (the caller's loss is a sum, too, and divides
// by the tokens of the global batch): with f_i = E / (K N) x assignments of expert i among N tokens, and P_i the mean
// over them of the scores normalized over experts, N times
//   aux  E-fold sum of f_i P_i   (Switch, arXiv 2101.03961, eq. 4; sequence-wise: DeepSeek-V3, arXiv 2412.19437, eq.
//   17) z    mean square of the logits' log-sum-exp   (ST-MoE, arXiv 2202.08906, eq. 5)
// f is a constant, so a rank's part needs its own scores and the counts of all: at most one small all_reduce a group,
// and gradients of all ranks add up to those of one rank. Legend: T tokens of this rank ([S, B] positions, sequence b
// at t % B), E experts, K experts of a token. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "core/comm/communicator.h"
#include "core/nn/router.h"
#include "core/spec/moe_config.h"

namespace ranklab {

struct BalanceGroups {
  std::vector<Communicator*> groups = {};  // whose tokens are counted together, one after another
  int64_t ranks = 1;                       // of all of them
  int64_t sequences = 1;                   // B; balanced apart when `per_sequence`
  bool per_sequence = false;
};

// Sum over this rank's tokens, differentiable; times nothing (no coefficient).
at::Tensor balance_loss_sum(const ExpertChoice& choice, const MoeConfig& config, const BalanceGroups& groups);
at::Tensor z_loss_sum(const at::Tensor& logits_TE);

// x itself; its backward gives `loss` the gradient `scale` beside.
at::Tensor attach_loss(const at::Tensor& x, const at::Tensor& loss, double scale);

}  // namespace ranklab
