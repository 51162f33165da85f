// The routing of a rank's tokens, as input to the dispatchers. Legend: T tokens of this rank, K experts per token, E
// experts of the model. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace ranklab {

class Communicator;

struct Routing {
  at::Tensor experts_TK;  // int64
  at::Tensor weights_TK;  // differentiable; the weights with which expert outputs are summed
  at::Tensor kept_TK;     // bool; undefined: all. Dropped assignments are not sent and contribute nothing
  int64_t num_experts = 0;
  int64_t even = -1;  // for meta tensors, the number of kept assignments; -1: all
  int64_t slots = 0;  // per expert, for dispatchers that pad to the same number (expert_slots.h); 0: none do
};
// The expert of every assignment [T K]; dropped assignments get the index after the last expert.
at::Tensor flat_experts(const Routing& routing);

// A rank's assignments (token, slot) in sending order: by expert, then token, then slot.
struct AssignmentOrder {
  at::Tensor flat_M;            // int64, token K + slot
  std::vector<int64_t> counts;  // [E]
};
AssignmentOrder order_by_expert(const Routing& routing);
// The same, together with the counts of all ranks of the group [group][E]; the host waits for a GPU once.
struct SharedOrder {
  AssignmentOrder own;
  std::vector<std::vector<int64_t>> counts;
};
SharedOrder order_by_expert(const Routing& routing, Communicator& group);
// Only the counts, without the sort.
std::vector<int64_t> count_by_expert(const Routing& routing);
// The same as a tensor [E] on the device of the assignments, for which the host does not wait.
at::Tensor device_counts_by_expert(const Routing& routing);

// The inverse of the permutation order [N]: index_select() with it undoes index_select() with `order`.
at::Tensor inverse_order(const at::Tensor& order_N);

// [T, H]: each token's weighted sum of its experts' outputs [M, H], which are in the given order; summed slot by slot.
at::Tensor weighted_sum(const at::Tensor& outputs_MH, const AssignmentOrder& order, const Routing& routing);
// The same for outputs [T K, H] in the order of tokens and slots.
at::Tensor weighted_sum_of_slots(const at::Tensor& by_slot, const Routing& routing);

// The row indices that sort rows by expert, then source, where rows are sorted by source, then expert. counts
// [sources][experts].
at::Tensor expert_major(const std::vector<std::vector<int64_t>>& counts, const at::TensorOptions& options);

}  // namespace ranklab
