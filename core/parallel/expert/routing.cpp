#include "core/parallel/expert/routing.h"

#include <ATen/ATen.h>

namespace ranklab {

AssignmentOrder order_by_expert(const Routing& routing) {
  const at::NoGradGuard no_grad;
  at::Tensor experts = routing.experts_TK.reshape({-1});
  // Dropped ones sort behind all experts.
  if (routing.kept_TK.defined())
    experts = at::where(routing.kept_TK.reshape({-1}), experts, at::full_like(experts, routing.num_experts));
  AssignmentOrder order;
  order.flat_M = std::get<1>(at::sort(experts, /*stable=*/true, /*dim=*/0, /*descending=*/false));
  const at::Tensor counts = at::bincount(experts, {}, routing.num_experts + 1).to(at::kCPU).contiguous();
  const int64_t* count = counts.const_data_ptr<int64_t>();
  order.counts.assign(count, count + routing.num_experts);
  order.flat_M = order.flat_M.narrow(0, 0, experts.size(0) - count[routing.num_experts]);
  return order;
}

at::Tensor weighted_sum(const at::Tensor& outputs_MH, const AssignmentOrder& order, const Routing& routing) {
  const int64_t tokens = routing.experts_TK.size(0), slots = routing.experts_TK.size(1);
  const int64_t all = tokens * slots;
  at::Tensor by_slot;
  if (order.flat_M.size(0) == all) {
    const at::Tensor place = at::empty_like(order.flat_M);
    place.scatter_(0, order.flat_M, at::arange(all, order.flat_M.options()));
    by_slot = outputs_MH.index_select(0, place);
  } else {
    by_slot = at::zeros({all, outputs_MH.size(1)}, outputs_MH.options()).index_copy(0, order.flat_M, outputs_MH);
  }
  const at::Tensor weights = routing.weights_TK.to(outputs_MH.scalar_type()).unsqueeze(-1);
  return (by_slot.view({tokens, slots, outputs_MH.size(1)}) * weights).sum(1);
}

at::Tensor expert_major(const std::vector<std::vector<int64_t>>& counts, const at::TensorOptions& options) {
  std::vector<std::vector<int64_t>> begins(counts.size());
  int64_t total = 0;
  for (size_t source = 0; source < counts.size(); ++source) {
    for (const int64_t count : counts[source]) {
      begins[source].push_back(total);
      total += count;
    }
  }
  at::Tensor rows = at::empty({total}, at::kLong);
  int64_t* row = rows.mutable_data_ptr<int64_t>();
  for (size_t expert = 0; !counts.empty() && expert < counts[0].size(); ++expert) {
    for (size_t source = 0; source < counts.size(); ++source) {
      for (int64_t i = 0; i < counts[source][expert]; ++i) *row++ = begins[source][expert] + i;
    }
  }
  return rows.to(options.device());
}

}  // namespace ranklab
