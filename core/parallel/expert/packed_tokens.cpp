#include "core/parallel/expert/packed_tokens.h"

#include "core/base/error.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

// The type represents all integers up to this one.
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

at::Tensor pack_tokens(const at::Tensor& tokens_TH, const Routing& routing) {
  const at::ScalarType type = tokens_TH.scalar_type();
  RANKLAB_CHECK(routing.num_experts <= largest_integer(type), ErrorKind::kInvalidArgument, .where = "experts",
                .what = "the numbers of the experts do not fit the tokens' type, in which they travel",
                .got = std::to_string(routing.num_experts) + " experts",
                .want = "at most " + std::to_string(largest_integer(type)),
                .fix = "--moe-token-dispatcher-type alltoall");
  return at::cat({tokens_TH, routing.weights_TK.to(type), named_experts(routing).to(type)}, 1);
}

PackedTokens unpack_tokens(const at::Tensor& packed, int64_t slots) {
  const int64_t hidden = packed.size(1) - 2 * slots;
  return {packed.narrow(1, 0, hidden), packed.narrow(1, hidden, slots),
          packed.detach().narrow(1, hidden + slots, slots).to(at::kLong)};
}

OwnAssignments::OwnAssignments(const PackedTokens& packed, int64_t first, int64_t own, int64_t even) : packed_(packed) {
  const at::Tensor& experts = packed.experts_NK;
  const at::Tensor mine = experts.ge(first).logical_and_(experts.lt(first + own));
  order_ = order_by_expert(
      {.experts_TK = experts - first, .weights_TK = {}, .kept_TK = mine, .num_experts = own, .even = even});
  row_M_ = order_.flat_M.floor_divide(experts.size(1));
}

at::Tensor OwnAssignments::rows() const { return packed_.tokens_NH.index_select(0, row_M_); }

at::Tensor OwnAssignments::weighted_sum(const at::Tensor& outputs_MH) const {
  const at::Tensor weights_M = packed_.weights_NK.reshape({-1}).index_select(0, order_.flat_M);
  const at::Tensor weighted_MH = outputs_MH * weights_M.to(outputs_MH.scalar_type()).unsqueeze(1);
  const at::Tensor nothing = at::zeros({packed_.tokens_NH.size(0), outputs_MH.size(1)}, outputs_MH.options());
  return nothing.index_add(0, row_M_, weighted_MH);
}

}  // namespace ranklab
