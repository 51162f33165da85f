#include "core/parallel/expert/capacity.h"

#include <algorithm>
#include <cmath>

#include "core/base/injected_bug.h"
#include "core/comm/purpose.h"
#include "core/parallel/context/position_order.h"
#include "core/parallel/expert/bin_counts.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

// [T, K] of this rank -> all tokens of the microbatch, in the order of positions.
at::Tensor gathered(const at::Tensor& x, const PositionGroups& groups) {
  const PurposeScope scope(Purpose::kRouting);
  at::Tensor all = x;
  if (groups.sp != nullptr) all = groups.sp->all_gather(all.contiguous());
  if (!groups.cp.active()) return all;
  all = groups.cp.comm->all_gather(all.contiguous());
  const at::Tensor by_position = all.view({all.size(0) / groups.sequences, -1});
  return in_position_order(by_position, groups.cp.size(), groups.cp.split.balance).view({-1, x.size(1)});
}

// The inverse: this rank's rows of the gathered tensor.
at::Tensor own_rows(const at::Tensor& all, int64_t own, const PositionGroups& groups) {
  at::Tensor rows = all;
  int64_t first = 0;
  if (groups.cp.active()) {
    const at::Tensor by_position = all.view({all.size(0) / groups.sequences, -1});
    rows = rank_after_rank(by_position, groups.cp.size(), groups.cp.split.balance).reshape(all.sizes());
    first = groups.cp.rank() * (all.size(0) / groups.cp.size());
  }
  if (groups.sp != nullptr) first += groups.sp->rank() * own;
  return rows.narrow(0, first, own);
}

// Sequences with a common prefix have tokens whose weights differ only by rounding, which depends on the layout. So
// weights are compared in half of their bits, and ties are broken by the order of the tokens.
at::Tensor coarse(const at::Tensor& weights) {
  return weights.to(weights.scalar_type() == at::kDouble ? at::kFloat : at::kBFloat16);
}

// Each assignment's rank among those of its expert, by descending weight.
at::Tensor places(const at::Tensor& experts_M, const at::Tensor& weights_M, int64_t num_experts) {
  const at::Tensor by_weight = std::get<1>(at::sort(coarse(weights_M), /*stable=*/true, 0, /*descending=*/true));
  const at::Tensor order = by_weight.index_select(0, order_by_value(experts_M.index_select(0, by_weight)));
  const at::Tensor rank = numbers_in_bins(experts_M.index_select(0, order), num_experts);
  return at::empty_like(rank).scatter_(0, order, rank);
}

}  // namespace

int64_t expert_capacity(int64_t tokens, const MoeConfig& c) {
  const double mean = static_cast<double>(tokens * c.topk) / static_cast<double>(c.num_experts);
  return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(c.capacity_factor * mean)));
}

int64_t most_kept(int64_t tokens, const MoeConfig& c, const PositionGroups& groups) {
  const int64_t ranks = (groups.sp != nullptr ? groups.sp->size() : 1) * (groups.cp.active() ? groups.cp.size() : 1);
  return std::min(tokens, expert_capacity(tokens * ranks, c));
}

at::Tensor within_capacity(const at::Tensor& experts_TK, const at::Tensor& weights_TK, const MoeConfig& c,
                           const PositionGroups& microbatch) {
  const bool alone = injected(InjectedBug::kCapacityLocal);
  const PositionGroups groups = alone ? PositionGroups{.sequences = microbatch.sequences} : microbatch;
  const at::NoGradGuard no_grad;
  const int64_t own = experts_TK.size(0);
  const at::Tensor experts = gathered(experts_TK, groups);
  const at::Tensor weights = gathered(weights_TK.detach(), groups);
  const int64_t capacity = expert_capacity(experts.size(0), c);
  const at::Tensor place = places(experts.reshape({-1}), weights.reshape({-1}), c.num_experts);
  return own_rows(place.lt(capacity).view({-1, c.topk}), own, groups);
}

}  // namespace ranklab
