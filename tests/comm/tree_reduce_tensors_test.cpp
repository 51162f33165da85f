#include "core/comm/tree_reduce_tensors.h"

#include <gtest/gtest.h>

#include "core/comm/tree_reduce.h"
#include "core/sim/aten.h"
#include "core/sim/op_cost.h"

namespace ranklab {
namespace {

// The tensor form adds in the same order as the definition: same bits, every group size, dtype and reduction.
TEST(TreeReduceTensors, HasTheBitsOfTheReference) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf, at::kLong}) {
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAvg, ReduceOp::kMin, ReduceOp::kMax}) {
      if (!can_reduce(dtype_of(dtype), op)) continue;
      for (int n = 1; n <= 9; ++n) {
        for (const bool in_fp32 : {true, false}) {
          std::vector<at::Tensor> inputs;
          std::vector<const void*> pointers;
          for (int r = 0; r < n; ++r) {
            inputs.push_back(at::arange(r, r + 100, at::kDouble).mul(0.7371 * (r + 1)).sin_().mul_(1000).to(dtype));
            pointers.push_back(inputs.back().data_ptr());
          }
          const at::Tensor want = at::empty({100}, dtype);
          tree_reduce_reference({dtype_of(dtype), op, in_fp32}, pointers, want.data_ptr(), 100);
          const at::Tensor got = tree_reduce_tensors(inputs, op, in_fp32);
          ASSERT_TRUE(at::equal(got, want))
              << at::toString(dtype) << " " << name(op) << " n=" << n << " fp32=" << in_fp32;
        }
      }
    }
  }
}

}  // namespace
}  // namespace ranklab
