#include "core/parallel/expert/capacity.h"

#include <algorithm>
#include <cmath>

#include "core/comm/purpose.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

at::Tensor gathered(const at::Tensor& x, Communicator* group) {
  if (group == nullptr || group->size() == 1) return x;
  const PurposeScope scope(Purpose::kRouting);
  return group->all_gather(x.contiguous());
}

// Sequences with a common prefix have tokens whose weights differ only by rounding, which depends on the layout:
// compare weights in half of their bits, then by the order of the tokens.
at::Tensor coarse(const at::Tensor& weights) {
  return weights.to(weights.scalar_type() == at::kDouble ? at::kFloat : at::kBFloat16);
}

// Each assignment's rank among those of its expert, by descending weight.
at::Tensor places(const at::Tensor& experts_M, const at::Tensor& weights_M, int64_t num_experts) {
  const at::Tensor by_weight = std::get<1>(at::sort(coarse(weights_M), /*stable=*/true, 0, /*descending=*/true));
  const at::Tensor by_expert = std::get<1>(at::sort(experts_M.index_select(0, by_weight), true, 0, false));
  const at::Tensor order = by_weight.index_select(0, by_expert);
  const at::Tensor counts = at::bincount(experts_M, {}, num_experts);
  const at::Tensor begins = counts.cumsum(0) - counts;
  const at::Tensor rank =
      at::arange(order.size(0), order.options()) - begins.index_select(0, experts_M.index_select(0, order));
  return at::empty_like(rank).scatter_(0, order, rank);
}

}  // namespace

int64_t expert_capacity(int64_t tokens, const MoeConfig& c) {
  const double mean = static_cast<double>(tokens * c.topk) / static_cast<double>(c.num_experts);
  return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(c.capacity_factor * mean)));
}

at::Tensor within_capacity(const at::Tensor& experts_TK, const at::Tensor& weights_TK, const MoeConfig& c,
                           Communicator* positions) {
  const at::NoGradGuard no_grad;
  const int64_t own = experts_TK.size(0);
  const at::Tensor experts = gathered(experts_TK, positions);
  const at::Tensor weights = gathered(weights_TK.detach(), positions);
  const int64_t capacity = expert_capacity(experts.size(0), c);
  const at::Tensor place = places(experts.reshape({-1}), weights.reshape({-1}), c.num_experts);
  const int64_t first = positions == nullptr ? 0 : positions->rank() * own;
  return place.lt(capacity).view({-1, c.topk}).narrow(0, first, own);
}

}  // namespace ranklab
