#include "backends/cuda/canonical_reduce.h"

#include <ATen/ATen.h>

#include <bit>

namespace ranklab {
namespace {

at::Tensor combine(const at::Tensor& left, const at::Tensor& right, ReduceOp op) {
  if (op == ReduceOp::kMin) return at::minimum(left, right);
  if (op == ReduceOp::kMax) return at::maximum(left, right);
  return left + right;
}

// Members [begin, end): split at the largest power of two below their number.
at::Tensor tree(const std::vector<at::Tensor>& inputs, size_t begin, size_t end, ReduceOp op) {
  if (end - begin == 1) return inputs[begin];
  const size_t split = begin + std::bit_floor(end - begin - 1);
  return combine(tree(inputs, begin, split, op), tree(inputs, split, end, op), op);
}

}  // namespace

at::Tensor tree_reduce_tensors(const std::vector<at::Tensor>& inputs, ReduceOp op, bool in_fp32) {
  const at::ScalarType type = inputs.front().scalar_type();
  const bool narrow = type == at::kBFloat16 || type == at::kHalf;
  std::vector<at::Tensor> terms = inputs;
  if (narrow && in_fp32) {
    for (at::Tensor& term : terms) term = term.to(at::kFloat);
  }
  at::Tensor sum = tree(terms, 0, terms.size(), op);
  if (op == ReduceOp::kAvg) sum = sum / static_cast<double>(inputs.size());
  return sum.to(type);
}

void start_canonical_reduction(NcclComm& comm, const Group& group, const Call& call) {
  if (call.input.numel() == 0) return;
  const int64_t n = group.size(), count = call.input.numel();
  const at::Tensor gathered = at::empty({n, count}, call.input.options());
  comm.accept(ncclAllGather(call.input.data_ptr(), gathered.data_ptr(), static_cast<size_t>(call.input.nbytes()),
                            ncclInt8, comm.handle(), comm.stream()),
              "gathering for a canonical reduction");
  int64_t begin = 0;
  if (call.verb == Verb::kReduceScatter && call.input.size(0) > 0) {
    const int64_t row = count / call.input.size(0);
    for (int r = 0; r < group.group_rank; ++r) begin += call.input_splits[static_cast<size_t>(r)] * row;
  }
  if (call.output.numel() == 0) return;
  std::vector<at::Tensor> inputs;
  for (int64_t r = 0; r < n; ++r) inputs.push_back(gathered[r].narrow(0, begin, call.output.numel()));
  call.output.view({-1}).copy_(tree_reduce_tensors(inputs, call.op, call.reduce_in_fp32));
}

}  // namespace ranklab
