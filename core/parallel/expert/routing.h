// Where the tokens of a rank go, as the dispatchers take it. Legend: T tokens of this rank, K experts of a token, E
// experts of the model. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace ranklab {

struct Routing {
  at::Tensor experts_TK;  // int64
  at::Tensor weights_TK;  // differentiable; of the outputs' sum
  at::Tensor kept_TK;     // bool; undefined: all. Dropped ones are not sent, and add nothing
  int64_t num_experts = 0;
  int64_t even = -1;  // of experts that nobody knows, assignments that are kept; -1: all
};

// A rank's assignments (token, slot) in the order in which they are sent: by expert, then token, then slot.
struct AssignmentOrder {
  at::Tensor flat_M;            // int64, token K + slot of each
  std::vector<int64_t> counts;  // [E]
};
AssignmentOrder order_by_expert(const Routing& routing);
// The counts alone, without the sort.
std::vector<int64_t> count_by_expert(const Routing& routing);

// order [N], a permutation -> where each of 0 .. N - 1 stands in it: index_select() with it undoes one with `order`.
at::Tensor inverse_order(const at::Tensor& order_N);

// [T, H]: each token's weighted sum of its experts' outputs [M, H], which come in `order`, added slot by slot.
at::Tensor weighted_sum(const at::Tensor& outputs_MH, const AssignmentOrder& order, const Routing& routing);

// Row r of each run of `counts` (runs [sources][experts], source by source) in expert order: by expert, then source.
at::Tensor expert_major(const std::vector<std::vector<int64_t>>& counts, const at::TensorOptions& options);

}  // namespace ranklab
