// Virtual times of scenarios small enough to compute by hand, from the closed forms of link_cost.h.
#include "core/comm/traced_communicator.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <thread>

#include "core/comm/call_watch.h"
#include "core/sim/aten.h"
#include "tests/comm/world_fixture.h"

namespace ranklab {
namespace {

using comm_test::all_ranks;

// A traced communicator over all ranks, with its clock and recorder. No ATen op is charged: there is no OpObserver.
struct Traced {
  explicit Traced(Endpoint& endpoint, int gpus_per_node = 8) : tracer(endpoint.global_rank(), "test") {
    const Group group = all_ranks(endpoint);
    comm = make_traced_communicator(
        endpoint.communicator(group), &clock, &tracer,
        std::make_unique<LinkCost>(comm_test::simple_profile(), group.global_ranks, gpus_per_node));
  }
  const std::vector<Event>& events() const { return tracer.trace().events; }
  VirtualClock clock;
  Tracer tracer;
  CommunicatorPtr comm;
};

const at::Tensor floats(int64_t count) { return at::ones({count}); }

// 4 ranks, 4000 bytes, ring: 2 * 3 hops of 1000 ns, 2 * 3 / 4 * 4000 = 6000 bytes of 1 ns: 12000 ns. The last member
// comes at 3000.
TEST(TracedCommunicatorTest, RingAllReduceClosedForm) {
  comm_test::run_ranks(4, [](Endpoint& endpoint) {
    Traced t(endpoint);
    const int64_t mine = 1000 * endpoint.global_rank();
    t.clock.advance(mine);
    t.comm->all_reduce(floats(1000));
    EXPECT_EQ(t.clock.now_ns(), 15'000);
    EXPECT_EQ(t.clock.exposed_ns(Axis::kTp), 12'000);
    EXPECT_EQ(t.clock.peer_wait_ns(), 3000 - mine);
    ASSERT_EQ(t.events().size(), 1U);
    const Event& e = t.events()[0];
    EXPECT_EQ(e.kind, EventKind::kCollective);
    EXPECT_EQ(e.verb, Verb::kAllReduce);
    EXPECT_EQ(e.axis, Axis::kTp);
    EXPECT_EQ(e.dtype, DType::kFloat32);
    EXPECT_EQ(e.virtual_posted_ns, mine);
    EXPECT_EQ(e.virtual_matched_ns, 3000);
    EXPECT_EQ(e.virtual_begin_ns, 3000);
    EXPECT_EQ(e.virtual_first_byte_ns, 9000);
    EXPECT_EQ(e.virtual_end_ns, 15'000);
    EXPECT_EQ(e.virtual_exposed_ns, 12'000);
    EXPECT_EQ(e.virtual_peer_wait_ns, 3000 - mine);
    EXPECT_EQ(t.tracer.trace().groups.at(0), (TraceGroup{Axis::kTp, {0, 1, 2, 3}}));
    EXPECT_EQ(e.logical_bytes, 4000);
    EXPECT_EQ(e.algorithm_bytes, 6000);
    EXPECT_EQ(e.wire_bytes, 4000);
    EXPECT_EQ(e.sequence, 0);
    EXPECT_LE(e.wall_begin_ns, e.wall_matched_ns);
    EXPECT_LE(e.wall_matched_ns, e.wall_end_ns);
  });
}

TEST(TracedCommunicatorTest, OverlapHidesCommunication) {
  comm_test::run_ranks(4, [](Endpoint& endpoint) {
    Traced t(endpoint);
    const WorkPtr hidden = t.comm->all_reduce_async(floats(1000));
    t.clock.advance(20'000);
    hidden->wait();
    EXPECT_EQ(t.clock.now_ns(), 20'000);
    EXPECT_EQ(t.clock.exposed_total_ns(), 0);
    const WorkPtr half = t.comm->all_reduce_async(floats(1000));
    t.clock.advance(5000);
    half->wait();
    EXPECT_EQ(t.clock.now_ns(), 32'000);
    EXPECT_EQ(t.clock.exposed_total_ns(), 7000);
  });
}

// Calls of one group follow one another on its link, whatever the order in which they are waited for.
TEST(TracedCommunicatorTest, CallsOfAGroupQueue) {
  comm_test::run_ranks(4, [](Endpoint& endpoint) {
    Traced t(endpoint);
    const WorkPtr first = t.comm->all_reduce_async(floats(1000));
    const WorkPtr second = t.comm->all_gather_async(floats(1000));  // 3 hops, 3 x 4000 bytes: 15000 ns
    second->wait();
    EXPECT_EQ(t.clock.now_ns(), 27'000);
    EXPECT_EQ(t.clock.exposed_ns(Axis::kTp), 15'000) << "of the gap at most the call's own transfer is exposed";
    first->wait();
    EXPECT_EQ(t.clock.now_ns(), 27'000);
    // Events are recorded by wait().
    ASSERT_EQ(t.events().size(), 2U);
    EXPECT_EQ(t.events()[0].verb, Verb::kAllGather);
    EXPECT_EQ(t.events()[0].virtual_begin_ns, 12'000);
    EXPECT_EQ(t.events()[0].virtual_exposed_ns, 15'000);
    EXPECT_EQ(t.events()[0].virtual_peer_wait_ns, 12'000) << "here: the call before it on the link";
    EXPECT_EQ(t.events()[0].logical_bytes, 16'000);
    EXPECT_EQ(t.events()[1].virtual_end_ns, 12'000);
    EXPECT_EQ(t.events()[1].virtual_exposed_ns, 0);
  });
}

struct RepeatableCalls : CallWatch {
  RepeatableCalls() { call_watch_of_thread = this; }
  ~RepeatableCalls() override { call_watch_of_thread = nullptr; }
  void posted(const Work& /*call*/, Axis /*axis*/, std::shared_ptr<RepeatableCall> repeatable) override {
    calls.push_back(std::move(repeatable));
  }
  void waits(const Work& /*call*/) override { ++begun; }
  void waited(const Work& /*call*/) override { ++ended; }
  std::vector<std::shared_ptr<RepeatableCall>> calls;
  int begun = 0, ended = 0;
};

// A repeated call lasts as long as the one that it repeats, behind the calls before it on the link.
TEST(TracedCommunicatorTest, RepeatedCallsQueueToo) {
  comm_test::run_ranks(4, [](Endpoint& endpoint) {
    Traced t(endpoint);
    const int64_t mine = 1000 * endpoint.global_rank();
    t.clock.advance(mine);
    RepeatableCalls seen;
    t.comm->all_reduce(floats(1000));  // of 12000 ns, from 3000 on
    ASSERT_EQ(seen.calls.size(), 1U);
    EXPECT_EQ(seen.begun, 1);
    EXPECT_EQ(seen.ended, 1);
    t.clock.advance(mine);
    const WorkPtr real = t.comm->all_reduce_async(floats(1000));  // from 18000 to 30000
    t.clock.advance(3000 - mine);
    const WorkPtr behind = seen.calls[0]->repeat(/*traced=*/true);
    EXPECT_FALSE(behind->wait().defined());
    EXPECT_EQ(t.clock.now_ns(), 42'000);
    behind->wait();
    real->wait();
    EXPECT_EQ(t.clock.now_ns(), 42'000);
    ASSERT_EQ(t.events().size(), 3U);
    EXPECT_EQ(t.events()[1].virtual_posted_ns, 18'000);
    EXPECT_EQ(t.events()[1].virtual_begin_ns, 30'000);
    EXPECT_EQ(t.events()[1].virtual_exposed_ns, 12'000);
    EXPECT_EQ(t.events()[1].logical_bytes, 4000);
    seen.calls[1]->repeat(/*traced=*/false)->wait();  // the others post it as much later as then
    EXPECT_EQ(t.clock.now_ns(), 57'000 - mine);
    EXPECT_EQ(t.events().size(), 3U);
  });
}

TEST(TracedCommunicatorTest, GroupsThatSpanNodesUseTheSlowerLink) {
  comm_test::run_ranks(4, [](Endpoint& endpoint) {
    Traced t(endpoint, 2);
    t.comm->all_reduce(floats(1000));
    EXPECT_EQ(t.clock.now_ns(), 6 * 5000 + 6000 * 4);
  });
}

// Two messages 0 -> 1 follow each other; one back 1 -> 0 has the other direction for itself.
TEST(TracedCommunicatorTest, MessagesQueuePerDirection) {
  comm_test::run_ranks(2, [](Endpoint& endpoint) {
    Traced t(endpoint);
    const bool sender = endpoint.global_rank() == 0;
    t.clock.advance(sender ? 100 : 500);
    std::vector<WorkPtr> works;
    for (int k = 0; k < 2; ++k)
      works.push_back(sender ? t.comm->send_async(floats(1000), 1) : t.comm->recv_async(floats(1000), 0));
    works.push_back(sender ? t.comm->recv_async(floats(500), 1) : t.comm->send_async(floats(500), 0));
    for (const WorkPtr& work : works) work->wait();
    ASSERT_EQ(t.events().size(), 3U);
    EXPECT_EQ(t.events()[0].virtual_begin_ns, 500);
    EXPECT_EQ(t.events()[0].virtual_end_ns, 5500);  // 1000 + 4000
    EXPECT_EQ(t.events()[1].virtual_begin_ns, 5500);
    EXPECT_EQ(t.events()[1].virtual_end_ns, 10'500);
    EXPECT_EQ(t.events()[1].sequence, 1);
    EXPECT_EQ(t.events()[2].virtual_begin_ns, 500);
    EXPECT_EQ(t.events()[2].virtual_end_ns, 3500);
    EXPECT_EQ(t.events()[0].verb, sender ? Verb::kSend : Verb::kRecv);
    EXPECT_EQ(t.events()[0].peer, sender ? 1 : 0);
    EXPECT_EQ(t.clock.now_ns(), 10'500);
  });
}

// Rank 0 sends everything to rank 1: 1000 rows of 4 bytes. All members must see the same end, that of the busiest link.
TEST(TracedCommunicatorTest, UnevenAllToAllLastsAsLongAsItsBusiestRank) {
  comm_test::run_ranks(4, [](Endpoint& endpoint) {
    Traced t(endpoint);
    const int rank = endpoint.global_rank();
    std::vector<int64_t> send(4, 0), recv(4, 0);
    if (rank == 0) send[1] = 1000;
    if (rank == 1) recv[0] = 1000;
    t.comm->all_to_all(floats(rank == 0 ? 1000 : 0), send, recv);
    EXPECT_EQ(t.clock.now_ns(), 3 * 1000 + 4000) << "rank " << rank;
    EXPECT_EQ(t.events().at(0).algorithm_bytes, rank == 0 ? 4000 : 0) << "what it sends, however much it gets";
  });
}

TEST(TracedCommunicatorTest, GroupOfOneTakesNoTime) {
  comm_test::run_ranks(1, [](Endpoint& endpoint) {
    Traced t(endpoint);
    const at::Tensor x = floats(10);
    EXPECT_EQ(t.comm->all_reduce(x).data_ptr(), x.data_ptr());
    const at::Tensor gathered = t.comm->all_gather(x);
    EXPECT_NE(gathered.data_ptr(), x.data_ptr()) << "a result of its own, as in larger groups";
    t.comm->barrier();
    EXPECT_EQ(t.clock.now_ns(), 0);
    EXPECT_TRUE(t.events().empty());
  });
}

TEST(TracedCommunicatorTest, WithoutAClockOnlyWallTimes) {
  comm_test::run_ranks(2, [](Endpoint& endpoint) {
    Tracer tracer(endpoint.global_rank(), "test");
    const auto comm = make_traced_communicator(endpoint.communicator(all_ranks(endpoint)), nullptr, &tracer, nullptr);
    comm->all_reduce(floats(10));
    const Event& e = tracer.trace().events.at(0);
    EXPECT_EQ(e.virtual_posted_ns, kNoTime);
    EXPECT_EQ(e.virtual_end_ns, 0);
    EXPECT_GT(e.wall_end_ns, 0);
    const auto silent = make_traced_communicator(endpoint.communicator(all_ranks(endpoint)), nullptr, nullptr, nullptr);
    EXPECT_EQ(silent->all_reduce(floats(1)).item<float>(), 2);
  });
}

// The same program with other wall-clock delays has the same virtual times, to the nanosecond.
TEST(TracedCommunicatorTest, VirtualTimeDoesNotDependOnWallTime) {
  std::array<int64_t, 4> first{};
  for (unsigned run = 0; run < 20; ++run) {
    comm_test::run_ranks(4, [&](Endpoint& endpoint) {
      Traced t(endpoint);
      const int rank = endpoint.global_rank();
      std::mt19937 random(run * 4 + static_cast<unsigned>(rank));
      for (int round = 0; round < 10; ++round) {
        if (random() % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
        t.clock.advance(100 * ((rank + round) % 4) + 17);
        const WorkPtr pending = t.comm->all_reduce_async(floats(100 + round));
        if (rank == 0) t.comm->send(floats(50), 3);
        if (rank == 3) t.comm->recv(floats(50), 0);
        t.comm->all_to_all(floats(400));
        pending->wait();
      }
      int64_t& want = first[static_cast<size_t>(rank)];
      if (run == 0) want = t.clock.now_ns();
      ASSERT_EQ(t.clock.now_ns(), want) << "run " << run << " rank " << rank;
    });
  }
}

}  // namespace
}  // namespace ranklab
