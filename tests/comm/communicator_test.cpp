// Argument checks of the verbs, RankContext, and the wrong-group detector.
#include "core/comm/communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/variable.h>

#include "core/base/error.h"
#include "core/comm/rank_context.h"
#include "core/sim/aten.h"
#include "tests/comm/world_fixture.h"

namespace ranklab {
namespace {

using testing::HasSubstr;

// What `call` complains about on rank 0 of two; it must throw before anything is posted.
std::string complaint(const std::function<void(Communicator&)>& call) {
  std::string text = "no error";
  comm_test::run_ranks(2, [&](Endpoint& endpoint) {
    const CommunicatorPtr comm = endpoint.communicator(comm_test::all_ranks(endpoint));
    if (endpoint.global_rank() != 0) return;
    try {
      call(*comm);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
      text = error.what();
    }
  });
  return text;
}

TEST(CommunicatorTest, RefusesBadArguments) {
  const at::Tensor x = at::ones({5, 2});
  EXPECT_THAT(complaint([](Communicator& c) { c.all_reduce(at::Tensor()); }), HasSubstr("the tensor is undefined"));
  EXPECT_THAT(complaint([](Communicator& c) { c.all_reduce(at::ones({2}, at::kLong), ReduceOp::kAvg); }),
              HasSubstr("got int64 with avg"));
  EXPECT_THAT(complaint([](Communicator& c) { c.all_reduce(at::ones({2}, at::kBool)); }),
              HasSubstr("got bool with sum"));
  EXPECT_THAT(complaint([&](Communicator& c) { c.reduce_scatter(x); }),
              HasSubstr("got 5 rows for 2 ranks; want 4 or 6 rows"));
  EXPECT_THAT(complaint([&](Communicator& c) {
                c.reduce_scatter(x, ReduceOp::kSum, {1, 3});
              }),
              HasSubstr("got rows [1 3], sum 4; want sum 5"));
  EXPECT_THAT(complaint([&](Communicator& c) { c.reduce_scatter(x, ReduceOp::kSum, {5}); }),
              HasSubstr("want 2 counts"));
  EXPECT_THAT(complaint([&](Communicator& c) { c.all_gather(x, {4, 5}); }), HasSubstr("got 5 rows; want 4 rows"));
  EXPECT_THAT(complaint([](Communicator& c) { c.all_gather(at::ones({})); }), HasSubstr("a scalar has no rows"));
  EXPECT_THAT(complaint([&](Communicator& c) { c.all_to_all(x, {2, 3}, {}); }), HasSubstr("want both or neither"));
  EXPECT_THAT(complaint([&](Communicator& c) {
                c.all_to_all(x, {-1, 6}, {1, 1});
              }),
              HasSubstr("a row count is negative"));
  EXPECT_THAT(complaint([&](Communicator& c) { c.broadcast(x, 2); }),
              HasSubstr("no such root in this group; got 2; want a group rank from 0 to 1"));
  EXPECT_THAT(complaint([&](Communicator& c) { c.send(x, 0); }), HasSubstr("a rank cannot message itself"));
  EXPECT_THAT(complaint([&](Communicator& c) { c.recv(x, -1); }),
              HasSubstr("[rank 0, tp[0 1], recv at communicator_test.cpp:"));
}

// A tensor that autograd saved for backward and that a collective then overwrote must be noticed.
TEST(CommunicatorTest, InPlaceVerbsTellAutograd) {
  comm_test::run_ranks(2, [](Endpoint& endpoint) {
    const CommunicatorPtr comm = endpoint.communicator(comm_test::all_ranks(endpoint));
    const at::Tensor x = at::ones({3});
    const auto before = x._version();
    comm->all_reduce(x);
    EXPECT_GT(x._version(), before);
  });
}

// The tensors of a finished call are released although a slower member still holds its own work.
TEST(CommunicatorTest, FinishedMembersReleaseTheirTensors) {
  comm_test::run_ranks(2, [](Endpoint& endpoint) {
    const CommunicatorPtr comm = endpoint.communicator(comm_test::all_ranks(endpoint));
    at::Tensor input = at::ones({100'000});
    const WorkPtr work = comm->all_gather_async(input);
    work->wait();
    EXPECT_EQ(input.use_count(), 1);
  });
}

constexpr Axis kAxes[] = {Axis::kWorld, Axis::kTp,  Axis::kCp,  Axis::kDp,  Axis::kPp,
                          Axis::kEp,    Axis::kEtp, Axis::kEdp, Axis::kDpCp};

// Every rank brings 2^rank: the sum is a bit mask of exactly who took part.
TEST(RankContextTest, SumsNameTheirGroup) {
  const HardwareProfile profile = comm_test::simple_profile();
  const ParallelDims layouts[] = {{.world = 8, .tp = 2, .pp = 2},
                                  {.world = 8, .tp = 2, .cp = 2, .ep = 4},
                                  {.world = 8, .tp = 4, .ep = 2, .etp = 2},
                                  {.world = 8, .tp = 2, .pp = 2, .order = "dp-tp-cp-ep-pp"},
                                  {.world = 6, .tp = 3, .ep = 2}};
  for (const ParallelDims& dims : layouts) {
    const DeviceMesh mesh(dims);
    comm_test::run_ranks(dims.world, [&](Endpoint& endpoint) {
      RankContext context(endpoint, mesh, {.profile = &profile});
      for (const Axis axis : kAxes) {
        int64_t want = 0;
        for (const int member : mesh.group(axis, context.global_rank()).global_ranks) want |= int64_t{1} << member;
        const at::Tensor bit = at::full({1}, int64_t{1} << context.global_rank(), at::kLong);
        EXPECT_EQ(context.comm(axis).all_reduce(bit).item<int64_t>(), want) << name(axis) << " " << dims.order;
        EXPECT_EQ(context.comm(axis).rank(), context.coordinate(axis));
      }
    });
  }
}

TEST(RankContextTest, CarriesWhatARankNeeds) {
  const HardwareProfile profile = comm_test::simple_profile();
  const DeviceMesh mesh({.world = 4, .tp = 2});
  comm_test::run_ranks(4, [&](Endpoint& endpoint) {
    RankContext context(endpoint, mesh, {.profile = &profile});
    EXPECT_EQ(context.tracer().trace().label, mesh.label(context.global_rank()));
    EXPECT_NE(context.op_observer(), nullptr);
    EXPECT_EQ(&context.comm(Axis::kTp), &context.comm(Axis::kTp));
    context.comm(Axis::kTp).all_reduce(at::ones({10}));
    EXPECT_GT(context.clock().exposed_ns(Axis::kTp), 0);
    EXPECT_EQ(context.tracer().trace().events.size(), 1U);

    RankContext real(endpoint, mesh, {.virtual_time = false});
    real.comm(Axis::kDp).all_reduce(at::ones({10}));
    EXPECT_EQ(real.op_observer(), nullptr);
    EXPECT_EQ(real.clock().now_ns(), 0);
    EXPECT_EQ(real.tracer().trace().events.size(), 1U);

    const DeviceMesh other({.world = 2});
    EXPECT_THROW(RankContext(endpoint, other, {.virtual_time = false}), Error);
    EXPECT_THROW(RankContext(endpoint, mesh, {}), Error) << "virtual time needs a profile";
  });
}

}  // namespace
}  // namespace ranklab
