#include "core/parallel/expert/packed_tokens.h"

#include <algorithm>

#include "core/sim/aten.h"

namespace ranklab {
namespace {

// The largest n such that the type represents all integers up to n.
int64_t largest_integer(at::ScalarType type) {
  switch (type) {
    case at::kBFloat16:
      return int64_t{1} << 8;
    case at::kHalf:
      return int64_t{1} << 11;
    case at::kFloat:
      return int64_t{1} << 24;
    default:
      return int64_t{1} << 53;
  }
}

}  // namespace

at::Tensor named_experts(const Routing& routing) {
  if (!routing.kept_TK.defined()) return routing.experts_TK;
  return routing.experts_TK.masked_fill(routing.kept_TK.logical_not(), -1);
}

ExpertColumns::ExpertColumns(at::ScalarType type, const Routing& routing)
    : type_(type), slots_(routing.experts_TK.size(1)), base_(largest_integer(type)) {
  for (int64_t represented = base_; represented < routing.num_experts; represented *= base_) ++digits_;
}

// Digits are written lowest first; the highest digit carries the sign.
at::Tensor ExpertColumns::write(const at::Tensor& experts_NK) const {
  if (digits_ == 1) return experts_NK.to(type_);
  std::vector<at::Tensor> digits;
  at::Tensor left = experts_NK;
  for (int64_t i = 1; i < digits_; ++i) {
    digits.push_back(left.remainder(base_).to(type_));
    left = left.floor_divide(base_);
  }
  digits.push_back(left.to(type_));
  return at::cat(digits, 1);
}

at::Tensor ExpertColumns::read(const at::Tensor& packed) const {
  const int64_t first = packed.size(1) - count();
  const auto digit = [&](int64_t i) { return packed.detach().narrow(1, first + i * slots_, slots_).to(at::kLong); };
  at::Tensor experts = digit(digits_ - 1);
  for (int64_t i = digits_ - 2; i >= 0; --i) experts = experts.mul_(base_).add_(digit(i));
  return experts;
}

at::Tensor pack_tokens(const at::Tensor& tokens_TH, const Routing& routing, const ExpertColumns& columns) {
  return at::cat({tokens_TH, routing.weights_TK.to(tokens_TH.scalar_type()), columns.write(named_experts(routing))}, 1);
}

PackedTokens unpack_tokens(const at::Tensor& packed, const ExpertColumns& columns) {
  const int64_t hidden = columns.hidden(packed);
  return {packed.narrow(1, 0, hidden), packed.narrow(1, hidden, packed.size(1) - hidden - columns.count()),
          columns.read(packed)};
}

OwnAssignments::OwnAssignments(const PackedTokens& packed, int64_t first, int64_t own, int64_t even) : packed_(packed) {
  const at::Tensor& experts = packed.experts_NK;
  const at::Tensor mine = experts.ge(first).logical_and_(experts.lt(first + own));
  order_ = order_by_expert({.experts_TK = experts - first,
                            .weights_TK = {},
                            .kept_TK = mine,
                            .num_experts = own,
                            .even = std::min(even, experts.numel())});
  row_M_ = order_.flat_M.floor_divide(experts.size(1));
}

at::Tensor OwnAssignments::rows() const { return packed_.tokens_NH.index_select(0, row_M_); }

at::Tensor OwnAssignments::weighted_sum(const at::Tensor& outputs_MH) const {
  const at::Tensor weights_M = packed_.weights_NK.reshape({-1}).index_select(0, order_.flat_M);
  const at::Tensor weighted_MH = outputs_MH * weights_M.to(outputs_MH.scalar_type()).unsqueeze(1);
  at::Tensor sums_NH = at::zeros({packed_.tokens_NH.size(0), outputs_MH.size(1)}, outputs_MH.options());
  return sums_NH.index_add_(0, row_M_, weighted_MH);
}

}  // namespace ranklab
