#include "core/parallel/expert/expert_slots.h"

#include <string>

#include "core/base/error.h"
#include "core/nn/custom_function.h"
#include "core/parallel/expert/bin_counts.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

// The rows with these indices; zeros where an index is the number of rows.
at::Tensor rows_or_zeros(const at::Tensor& rows, const at::Tensor& index) {
  return at::cat({rows, at::zeros({1, rows.size(1)}, rows.options())}).index_select(0, index);
}

// Sources [n, H] of `fan` copies each -> results [m, H]: result i is a copy of source `from[i] / fan`, and copy j is at
// result `to[j]`; zeros where an index is past the end. Backward also only reads rows: no two gradients are added to
// the same address at once, as in the backward of index_select(), so their order is fixed.
struct MoveRows : CustomFunction<MoveRows> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& sources, const at::Tensor& from,
                            const at::Tensor& to, int64_t fan) {
    ctx->save_for_backward({to});
    ctx->saved_data["fan"] = fan;
    return rows_or_zeros(sources, fan == 1 ? from : from.floor_divide(fan));
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const int64_t fan = ctx->saved_data["fan"].toInt();
    const at::Tensor copies = rows_or_zeros(grads[0], ctx->get_saved_variables()[0]);
    return {fan == 1 ? copies : copies.view({copies.size(0) / fan, fan, copies.size(1)}).sum(1), {}, {}, {}};
  }
};

// On a GPU the host would have to wait for it.
void check_slots(const at::Tensor& expert_M, const Routing& routing) {
  if (!expert_M.is_cpu()) return;
  const NoCostScope free;
  const auto most =
      bin_counts(expert_M, routing.num_experts + 1).narrow(0, 0, routing.num_experts).max().item<int64_t>();
  RANKLAB_CHECK(most <= routing.slots, ErrorKind::kInternal, .where = "padded experts",
                .what = "an expert keeps more tokens than it has slots", .got = std::to_string(most),
                .want = std::to_string(routing.slots) + " or fewer");
}

at::Tensor swapped(const at::Tensor& rows, int64_t outer, int64_t inner) {
  if (outer == 1 || inner == 1) return rows;
  return rows.view({outer, inner, -1, rows.size(1)}).transpose(0, 1).reshape(rows.sizes());
}

}  // namespace

ExpertSlots::ExpertSlots(const Routing& routing) : routing_(routing) {
  const at::NoGradGuard no_grad;
  const at::Tensor expert_M = flat_experts(routing);
  const int64_t all = expert_M.size(0), slots = routing.num_experts * routing.slots;
  check_slots(expert_M, routing);
  const at::Tensor order_M = order_by_value(expert_M), sorted_M = expert_M.index_select(0, order_M);
  const at::Tensor number_M = numbers_in_bins(sorted_M, routing.num_experts + 1);
  const at::Tensor slot_M = (sorted_M * routing.slots + number_M).clamp_max_(slots);
  place_M_ = at::empty_like(slot_M).scatter_(0, order_M, slot_M);
  assignment_S_ = at::full({slots + 1}, all, order_M.options()).scatter_(0, slot_M, order_M).narrow(0, 0, slots);
}

at::Tensor ExpertSlots::rows(const at::Tensor& tokens_TH) const {
  return MoveRows::apply(tokens_TH, assignment_S_, place_M_, routing_.experts_TK.size(1));
}

at::Tensor ExpertSlots::weighted_sum(const at::Tensor& outputs_SH) const {
  const at::Tensor outputs_MH = MoveRows::apply(outputs_SH, place_M_, assignment_S_, int64_t{1});
  return weighted_sum_of_slots(outputs_MH, routing_);
}

at::Tensor rows_by_expert(const at::Tensor& rows, int64_t sources, int64_t experts) {
  return swapped(rows, sources, experts);
}
at::Tensor rows_by_source(const at::Tensor& rows, int64_t sources, int64_t experts) {
  return swapped(rows, experts, sources);
}

}  // namespace ranklab
