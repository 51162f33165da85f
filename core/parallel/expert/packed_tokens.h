// Tokens packed with their routing: one row [token | weights | experts] per token with its K experts, so that a single
// exchange sends all three. Expert indices are sent in the tokens' type, -1 where the receiver has nothing to do. The
// receiver runs its own experts and adds up their outputs per token. Legend: N rows, H hidden, K experts per token.
// Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/parallel/expert/routing.h"

namespace ranklab {

// [T, K] int64: the experts of each token, -1 for dropped ones.
at::Tensor named_experts(const Routing& routing);
// Experts dropped by kept_TK of `routing` become -1. Throws kInvalidArgument if the tokens' type cannot represent the
// expert indices.
at::Tensor pack_tokens(const at::Tensor& tokens_TH, const Routing& routing);

struct PackedTokens {
  at::Tensor tokens_NH;   // differentiable
  at::Tensor weights_NK;  // differentiable
  at::Tensor experts_NK;  // int64, -1: not for the receiver
};
PackedTokens unpack_tokens(const at::Tensor& packed, int64_t slots);

// The assignments of packed tokens to the experts [first, first + own), sorted by expert, then row, then slot.
class OwnAssignments {
 public:
  // `even`: for meta tensors, the number of assignments (all ranks get equally many).
  OwnAssignments(const PackedTokens& packed, int64_t first, int64_t own, int64_t even);
  const std::vector<int64_t>& counts() const { return order_.counts; }
  at::Tensor rows() const;  // [M, H], the tokens in this order
  at::Tensor weighted_sum(
      const at::Tensor& outputs_MH) const;  // [N, H], the weighted sum over each token's experts on this rank

 private:
  PackedTokens packed_;
  AssignmentOrder order_;
  at::Tensor row_M_;
};

}  // namespace ranklab
