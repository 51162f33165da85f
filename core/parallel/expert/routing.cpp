#include "core/parallel/expert/routing.h"

#include <numeric>

#include "core/base/even_parts.h"
#include "core/parallel/expert/bin_counts.h"
#include "core/parallel/expert/exchange.h"
#include "core/parallel/expert/host_numbers.h"
#include "core/sim/aten.h"

namespace ranklab {

namespace {

at::Tensor device_counts_of(const at::Tensor& experts, const Routing& routing) {
  return bin_counts(experts, routing.num_experts + 1).narrow(0, 0, routing.num_experts);
}

// The counts assumed for meta tensors.
std::vector<int64_t> assumed_counts(const at::Tensor& experts, const Routing& routing) {
  return even_parts(routing.even < 0 ? experts.numel() : routing.even, routing.num_experts);
}

std::vector<int64_t> counts_of(const at::Tensor& experts, const Routing& routing) {
  const at::Tensor device_counts = device_counts_of(experts, routing);
  if (experts.is_meta()) return assumed_counts(experts, routing);
  const at::Tensor counts = device_counts.to(at::kCPU).contiguous();
  return {counts.const_data_ptr<int64_t>(), counts.const_data_ptr<int64_t>() + routing.num_experts};
}

AssignmentOrder order_of(const at::Tensor& flat, std::vector<int64_t> counts) {
  return {flat.narrow(0, 0, std::accumulate(counts.begin(), counts.end(), int64_t{0})), std::move(counts)};
}

}  // namespace

at::Tensor flat_experts(const Routing& routing) {
  const at::Tensor experts = routing.experts_TK.reshape({-1});
  if (!routing.kept_TK.defined()) return experts;
  return at::where(routing.kept_TK.reshape({-1}), experts, at::full_like(experts, routing.num_experts));
}

std::vector<int64_t> count_by_expert(const Routing& routing) {
  const at::NoGradGuard no_grad;
  return counts_of(flat_experts(routing), routing);
}

at::Tensor device_counts_by_expert(const Routing& routing) {
  const at::NoGradGuard no_grad;
  return device_counts_of(flat_experts(routing), routing);
}

AssignmentOrder order_by_expert(const Routing& routing) {
  const at::NoGradGuard no_grad;
  const at::Tensor experts = flat_experts(routing);
  const at::Tensor flat = order_by_value(experts);
  return order_of(flat, counts_of(experts, routing));
}

SharedOrder order_by_expert(const Routing& routing, Communicator& group) {
  if (group.size() == 1) {
    AssignmentOrder own = order_by_expert(routing);
    return {own, {own.counts}};
  }
  const at::NoGradGuard no_grad;
  const at::Tensor experts = flat_experts(routing);
  const at::Tensor flat = order_by_value(experts);
  const at::Tensor mine = device_counts_of(experts, routing);
  const auto all = experts.is_meta() ? share_counts(assumed_counts(experts, routing), group, mine.options())
                                     : share_counts(mine, group);
  return {order_of(flat, all[static_cast<size_t>(group.rank())]), all};
}

at::Tensor inverse_order(const at::Tensor& order_N) {
  return at::empty_like(order_N).scatter_(0, order_N, at::arange(order_N.size(0), order_N.options()));
}

at::Tensor weighted_sum(const at::Tensor& outputs_MH, const AssignmentOrder& order, const Routing& routing) {
  const int64_t all = routing.experts_TK.numel();
  at::Tensor by_slot;
  if (order.flat_M.size(0) == all) {
    by_slot = outputs_MH.index_select(0, inverse_order(order.flat_M));
  } else {
    by_slot = at::zeros({all, outputs_MH.size(1)}, outputs_MH.options()).index_copy_(0, order.flat_M, outputs_MH);
  }
  return weighted_sum_of_slots(by_slot, routing);
}

at::Tensor weighted_sum_of_slots(const at::Tensor& by_slot, const Routing& routing) {
  const at::Tensor weights_TK = routing.weights_TK.to(by_slot.scalar_type());
  return (by_slot.view({weights_TK.size(0), weights_TK.size(1), by_slot.size(1)}) * weights_TK.unsqueeze(-1)).sum(1);
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
  if (options.device().is_meta()) return at::empty({total}, options.dtype(at::kLong));
  at::Tensor rows = host_numbers(total, at::kLong, options.device());
  int64_t* row = rows.mutable_data_ptr<int64_t>();
  for (size_t expert = 0; !counts.empty() && expert < counts[0].size(); ++expert) {
    for (size_t source = 0; source < counts.size(); ++source) {
      for (int64_t i = 0; i < counts[source][expert]; ++i) *row++ = begins[source][expert] + i;
    }
  }
  return sent_to(options.device(), rows);
}

}  // namespace ranklab
