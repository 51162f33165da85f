// Biases of experts, added to rows that are sorted by expert: an expert's bias is added to each of its rows. As in
// Megatron-Core (--add-bias-linear, moe/experts.py), a routing probability scales the whole output of an expert,
// including its second bias; here the combine does this. Works with DeferWeightGrads. Every expert gets a gradient,
// which is zero without rows. Cost: one pass over the rows forward, and one backward. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace ranklab {

// What this rank does with a bias. Where rows are partial sums over etp (the output of a row-parallel layer), one rank
// adds the bias for its group. All ranks have the gradients of all rows, so each can compute the bias gradient without
// a sum over ranks.
enum class BiasUse : uint8_t { kAdd, kAddForGroup, kLeaveToPeer };

// rows [N, O] sorted by expert, counts and biases [O] per expert -> [N, O]. Without biases, returns the rows
// themselves.
at::Tensor add_expert_biases(const at::Tensor& rows_NO, const std::vector<int64_t>& counts,
                             const std::vector<at::Tensor>& biases_O, BiasUse use = BiasUse::kAdd);

}  // namespace ranklab
