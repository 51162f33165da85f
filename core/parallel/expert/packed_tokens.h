// Tokens that travel with what their receiver must know of them: one row [token | weights | experts] for a token and
// its K experts, so that one exchange carries all three. Experts travel as numbers of the tokens' type, -1 where the
// receiver has nothing to do. The receiver's own experts then compute, and their outputs are added up token by token.
// Legend: N rows, H hidden, K experts of a token. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/parallel/expert/routing.h"

namespace ranklab {

// [T, K] int64: the experts of each token, -1 for dropped ones.
at::Tensor named_experts(const Routing& routing);
// kept_TK of `routing` decides which experts are named. Throws when the tokens' type cannot hold their numbers.
at::Tensor pack_tokens(const at::Tensor& tokens_TH, const Routing& routing);

struct PackedTokens {
  at::Tensor tokens_NH;   // differentiable
  at::Tensor weights_NK;  // differentiable
  at::Tensor experts_NK;  // int64, -1: not for the receiver
};
PackedTokens unpack_tokens(const at::Tensor& packed, int64_t slots);

// The assignments of packed tokens to the experts [first, first + own), by expert, then row, then slot.
class OwnAssignments {
 public:
  // `even`: how many there are when all ranks get as many, for tokens of a shape alone.
  OwnAssignments(const PackedTokens& packed, int64_t first, int64_t own, int64_t even);
  const std::vector<int64_t>& counts() const { return order_.counts; }
  at::Tensor rows() const;                                      // [M, H], the tokens in that order
  at::Tensor weighted_sum(const at::Tensor& outputs_MH) const;  // [N, H], each token's own experts added up

 private:
  PackedTokens packed_;
  AssignmentOrder order_;
  at::Tensor row_M_;
};

}  // namespace ranklab
