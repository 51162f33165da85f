#include "backends/cuda/nccl/canonical_reduce.h"

#include <ATen/ATen.h>

#include "core/comm/tree_reduce_tensors.h"

namespace ranklab {

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
