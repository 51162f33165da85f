#include "backends/cuda/nccl/nccl_types.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/cuda/nccl/call_compare.h"
#include "backends/cuda/nccl/nccl_api.h"
#include "backends/cuda/nccl/nccl_verbs.h"
#include "core/base/error.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

using ::testing::HasSubstr;

TEST(NcclTypes, EachReducibleDtypeHasItsOwn) {
  const std::vector<std::pair<at::ScalarType, ncclDataType_t>> pairs = {
      {at::kFloat, ncclFloat32}, {at::kDouble, ncclFloat64}, {at::kBFloat16, ncclBfloat16}, {at::kHalf, ncclFloat16},
      {at::kLong, ncclInt64},    {at::kInt, ncclInt32},      {at::kChar, ncclInt8},         {at::kByte, ncclUint8}};
  for (const auto& [type, nccl] : pairs) EXPECT_EQ(nccl_type(type), nccl);
  EXPECT_THROW(nccl_type(at::kBool), Error);
  EXPECT_THROW(nccl_type(at::kComplexFloat), Error);
}

TEST(NcclTypes, EachReductionHasItsOwn) {
  EXPECT_EQ(nccl_reduction(ReduceOp::kSum), ncclSum);
  EXPECT_EQ(nccl_reduction(ReduceOp::kAvg), ncclAvg);
  EXPECT_EQ(nccl_reduction(ReduceOp::kMin), ncclMin);
  EXPECT_EQ(nccl_reduction(ReduceOp::kMax), ncclMax);
}

TEST(NcclApi, ErrorsSayWhatFailed) {
  EXPECT_NO_THROW(check_nccl(ncclInProgress, "anything"));
  try {
    check_nccl(ncclInvalidUsage, "starting a test");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCommunication);
    EXPECT_THAT(error.what(), HasSubstr("NCCL failed while starting a test"));
  }
  EXPECT_THROW(check_cuda(cudaErrorInvalidValue, "starting a test"), Error);
}

Call call_of(Verb verb, const at::Tensor& input, const at::Tensor& output = {}) {
  Call call;
  call.verb = verb;
  call.input = input;
  call.output = output;
  return call;
}

TEST(NcclVerbs, RingBytesOfEachVerb) {
  const Group group{Axis::kDp, {0, 1, 2, 3}, 1};
  const at::Tensor t = at::zeros({8, 2});  // 64 bytes
  EXPECT_EQ(ring_bytes(group, call_of(Verb::kAllReduce, t, t)), 96);
  Call scatter = call_of(Verb::kReduceScatter, t, at::zeros({2, 2}));
  EXPECT_EQ(ring_bytes(group, scatter), 48);
  EXPECT_EQ(ring_bytes(group, call_of(Verb::kAllGather, at::zeros({2, 2}), t)), 48);
  Call exchange = call_of(Verb::kAllToAll, t, t);
  exchange.input_splits = {1, 5, 2, 0};
  EXPECT_EQ(ring_bytes(group, exchange), 3 * 8);
  EXPECT_EQ(ring_bytes(group, call_of(Verb::kSend, t)), 64);
  EXPECT_EQ(ring_bytes(group, call_of(Verb::kBarrier, {})), 0);
}

TEST(NcclVerbs, GradientsTravelInFp32AndActivationsAsTheyAre) {
  const at::Tensor bf16 = at::zeros({8, 2}, at::kBFloat16), fp32 = at::zeros({8, 2});
  const auto group = [](Axis axis) { return Group{axis, {0, 1, 2, 3}, 1}; };
  for (const Axis axis : {Axis::kDp, Axis::kDpShard, Axis::kEdp, Axis::kDpReplica, Axis::kWorld}) {
    EXPECT_TRUE(travels_in_fp32(group(axis), call_of(Verb::kAllReduce, bf16, bf16))) << name(axis);
    EXPECT_FALSE(travels_in_fp32(group(axis), call_of(Verb::kAllReduce, fp32, fp32)));
    EXPECT_FALSE(travels_in_fp32(group(axis), call_of(Verb::kAllGather, bf16, bf16))) << "no sum, nothing to round";
  }
  for (const Axis axis : {Axis::kTp, Axis::kEp, Axis::kEtp, Axis::kCp, Axis::kPp})
    EXPECT_FALSE(travels_in_fp32(group(axis), call_of(Verb::kReduceScatter, bf16, bf16))) << name(axis);
  // The reported types are those that are sent.
  EXPECT_EQ(ring_bytes(group(Axis::kDp), call_of(Verb::kAllReduce, bf16, bf16)), 96);
  EXPECT_EQ(ring_bytes(group(Axis::kTp), call_of(Verb::kAllReduce, bf16, bf16)), 48);
}

TEST(NcclCommunicator, SignaturesDifferWhereCallsDo) {
  const at::Tensor t = at::zeros({4, 3});
  Call base = call_of(Verb::kAllReduce, t, t);
  const std::string same = signature(base);
  EXPECT_EQ(same, "all_reduce(sum) Float [4, 3]");
  Call other = base;
  other.op = ReduceOp::kMax;
  EXPECT_NE(signature(other), same);
  other = base;
  other.input = other.output = at::zeros({4, 3}, at::kInt);
  EXPECT_NE(signature(other), same);
  other.input = other.output = at::zeros({3, 4});
  EXPECT_NE(signature(other), same);
  // The two ends of a message agree.
  EXPECT_EQ(signature(call_of(Verb::kSend, t)), signature(call_of(Verb::kRecv, {}, t)));
  // Members of an uneven gather bring different rows.
  Call a = call_of(Verb::kAllGather, at::zeros({1, 3}), t), b = call_of(Verb::kAllGather, at::zeros({3, 3}), t);
  a.output_splits = b.output_splits = {1, 3};
  EXPECT_EQ(signature(a), signature(b));
}

}  // namespace
}  // namespace ranklab
