// Tokens packed with their routing: one row [token | weights | experts] per token with its K experts, so that a single
// exchange sends all three. Expert indices are sent in the tokens' type, in as many columns each as are needed to
// represent them exactly; -1 means that the receiver has nothing to do. The receiver runs its own experts and sums
// their outputs per token. Legend: N rows, H hidden, K experts per token. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <vector>

#include "core/parallel/expert/routing.h"

namespace ranklab {

// [T, K] int64: the experts of each token, -1 for dropped ones.
at::Tensor named_experts(const Routing& routing);

// The columns of a row that hold its experts. bf16 represents integers only up to 256, so a larger index is sent as two
// digits of base 256.
class ExpertColumns {
 public:
  ExpertColumns(at::ScalarType type, const Routing& routing);

  int64_t count() const { return slots_ * digits_; }
  // The width of the token in a packed row.
  int64_t hidden(const at::Tensor& packed) const { return packed.size(1) - slots_ - count(); }
  at::Tensor write(const at::Tensor& experts_NK) const;  // [N, count()], in the tokens' type
  at::Tensor read(const at::Tensor& packed) const;       // [N, K], int64

 private:
  at::ScalarType type_;
  int64_t slots_, base_, digits_ = 1;
};

// Experts that routing.kept_TK drops become -1.
at::Tensor pack_tokens(const at::Tensor& tokens_TH, const Routing& routing, const ExpertColumns& columns);

struct PackedTokens {
  at::Tensor tokens_NH;   // differentiable
  at::Tensor weights_NK;  // differentiable
  at::Tensor experts_NK;  // int64, -1: not for the receiver
};
PackedTokens unpack_tokens(const at::Tensor& packed, const ExpertColumns& columns);

// The assignments of packed tokens to the experts [first, first + own), sorted by expert, then row, then slot.
class OwnAssignments {
 public:
  // `even`: for meta tensors, the number of assignments (as many as a rank sends), or all that arrived if these are
  // fewer.
  OwnAssignments(const PackedTokens& packed, int64_t first, int64_t own, int64_t even);
  const std::vector<int64_t>& counts() const { return order_.counts; }
  at::Tensor rows() const;  // [M, H], the tokens in the order of the assignments
  // [N, H], the weighted sum over each token's experts on this rank
  at::Tensor weighted_sum(const at::Tensor& outputs_MH) const;

 private:
  PackedTokens packed_;
  AssignmentOrder order_;
  at::Tensor row_M_;
};

}  // namespace ranklab
