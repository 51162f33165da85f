// The fast reduction against its definition, bit for bit, and the definition against orders written out by hand.
#include "core/comm/tree_reduce.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/sim/aten.h"
#include "core/sim/op_cost.h"

namespace ranklab {
namespace {

std::vector<const void*> pointers(const std::vector<at::Tensor>& tensors) {
  std::vector<const void*> out;
  for (const at::Tensor& tensor : tensors) out.push_back(tensor.data_ptr());
  return out;
}

at::Tensor reduce(const std::vector<at::Tensor>& inputs, ReduceOp op, bool in_fp32 = true) {
  at::Tensor out = at::empty_like(inputs[0]);
  void* to = out.data_ptr();
  tree_reduce({dtype_of(out.scalar_type()), op, in_fp32}, pointers(inputs), {&to, 1}, out.numel());
  return out;
}

at::Tensor reference(const std::vector<at::Tensor>& inputs, ReduceOp op, bool in_fp32 = true) {
  at::Tensor out = at::empty_like(inputs[0]);
  tree_reduce_reference({dtype_of(out.scalar_type()), op, in_fp32}, pointers(inputs), out.data_ptr(), out.numel());
  return out;
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return std::memcmp(a.data_ptr(), b.data_ptr(), a.nbytes()) == 0;
}

std::vector<at::Tensor> random_inputs(int n, int64_t count, at::ScalarType dtype) {
  std::vector<at::Tensor> out;
  at::manual_seed(static_cast<uint64_t>(n * 10'000 + count));
  for (int i = 0; i < n; ++i) {
    const at::Tensor x = at::randn({count}, at::kDouble);
    out.push_back(at::isFloatingType(dtype) ? x.to(dtype) : at::mul(x, 1e5).to(at::kLong).to(dtype));
  }
  return out;
}

TEST(TreeReduceTest, EqualsTheReferenceBitForBit) {
  const at::ScalarType dtypes[] = {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf, at::kLong, at::kInt, at::kByte};
  for (const at::ScalarType dtype : dtypes) {
    for (int n = 1; n <= 19; ++n) {
      for (const int64_t count : {1, 7, 1000, 2048, 4097, 9001}) {
        const auto inputs = random_inputs(n, count, dtype);
        for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAvg, ReduceOp::kMin, ReduceOp::kMax}) {
          if (!can_reduce(dtype_of(dtype), op)) continue;
          EXPECT_TRUE(same_bits(reduce(inputs, op), reference(inputs, op)))
              << dtype << " n " << n << " count " << count << " " << name(op);
          EXPECT_TRUE(same_bits(reduce(inputs, op, false), reference(inputs, op, false))) << dtype << " " << n;
        }
      }
    }
  }
}

TEST(TreeReduceTest, OrderIsTheBalancedTree) {
  const auto in = random_inputs(8, 500, at::kFloat);
  const auto take = [&](size_t n) { return std::vector<at::Tensor>(in.begin(), in.begin() + static_cast<int64_t>(n)); };
  const at::Tensor four = (in[0] + in[1]) + (in[2] + in[3]);
  EXPECT_TRUE(same_bits(reduce(take(3), ReduceOp::kSum), (in[0] + in[1]) + in[2]));
  EXPECT_TRUE(same_bits(reduce(take(4), ReduceOp::kSum), four));
  EXPECT_TRUE(same_bits(reduce(take(5), ReduceOp::kSum), four + in[4]));
  EXPECT_TRUE(same_bits(reduce(take(6), ReduceOp::kSum), four + (in[4] + in[5])));
  EXPECT_TRUE(same_bits(reduce(take(7), ReduceOp::kSum), four + ((in[4] + in[5]) + in[6])));
  EXPECT_TRUE(same_bits(reduce(take(8), ReduceOp::kSum), four + ((in[4] + in[5]) + (in[6] + in[7]))));
  // The test can fail: the sequential order gives different bits.
  EXPECT_FALSE(same_bits(reduce(take(4), ReduceOp::kSum), ((in[0] + in[1]) + in[2]) + in[3]));
}

TEST(TreeReduceTest, SixteenBitInputsAreAddedInFp32) {
  // bf16 steps by 2 from 256 on. fp32 keeps 259 and rounds it once, to 260; partial sums would be 256 and 2.
  std::vector<at::Tensor> inputs(4, at::ones({1}, at::kBFloat16));
  inputs[0] = at::full({1}, 256, at::kBFloat16);
  EXPECT_EQ(reduce(inputs, ReduceOp::kSum).item<double>(), 260);
  EXPECT_EQ(reduce(inputs, ReduceOp::kSum, false).item<double>(), 258);
}

TEST(TreeReduceTest, EveryOutputIsFilledAndMayBeAnInput) {
  auto inputs = random_inputs(5, 3000, at::kFloat);
  const at::Tensor want = reference(inputs, ReduceOp::kSum);
  std::vector<void*> outputs;
  for (at::Tensor& tensor : inputs) outputs.push_back(tensor.data_ptr());
  tree_reduce({}, pointers(inputs), outputs, 3000);
  for (const at::Tensor& tensor : inputs) EXPECT_TRUE(same_bits(tensor, want));
}

TEST(TreeReduceTest, SpecialValues) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<at::Tensor> with_nan = {at::tensor({1.0, nan, 3.0}), at::tensor({nan, 2.0, -1.0})};
  for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
    const at::Tensor got = reduce(with_nan, op);
    EXPECT_TRUE(at::isnan(got[0]).item<bool>() && at::isnan(got[1]).item<bool>()) << name(op);
  }
  const at::Tensor big = at::full({1}, std::numeric_limits<int32_t>::max(), at::kInt);
  EXPECT_EQ(reduce({big, at::ones({1}, at::kInt)}, ReduceOp::kSum).item<int>(), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(reduce({at::full({1}, 1.0), at::full({1}, 2.0), at::full({1}, 4.5)}, ReduceOp::kAvg).item<double>(), 2.5);
  EXPECT_FALSE(can_reduce(DType::kInt64, ReduceOp::kAvg));
  EXPECT_FALSE(can_reduce(DType::kFloat8, ReduceOp::kSum));
}

}  // namespace
}  // namespace ranklab
