// Virtual times of puts by hand, from the closed forms of link_cost.h: a link of 1000 ns and a byte a nanosecond.
#include "core/comm/traced_peer_memory.h"

#include <gtest/gtest.h>

#include "core/comm/purpose.h"
#include "core/comm/traced_communicator.h"
#include "core/sim/aten.h"
#include "tests/comm/world_fixture.h"

namespace ranklab {
namespace {

// Rows of 50.
at::Tensor bytes(int64_t count) { return at::zeros({count / 50, 50}, at::TensorOptions(at::kByte)); }

TEST(TracedPeerMemory, PutsLeaveOneAfterAnotherAndTheOwnerWaitsForTheLast) {
  comm_test::run_ranks(3, [](Endpoint& endpoint) {
    VirtualClock clock;
    Tracer tracer(endpoint.global_rank(), "test");
    const Group group = comm_test::all_ranks(endpoint);
    const CommunicatorPtr comm =
        make_traced_communicator(endpoint.communicator(group), &clock, &tracer,
                                 std::make_unique<LinkCost>(comm_test::simple_profile(), group.global_ranks, 8));
    const PeerMemoryPtr memory = peer_memory_of(*comm);
    const int self = endpoint.global_rank();
    clock.advance(100 * self);
    {
      const PurposeScope scope(Purpose::kDispatch);
      if (self == 2) {
        memory->put(2, bytes(4000));  // stays: no link
        memory->put(1, bytes(500));
        memory->put(0, bytes(300));
      }
      if (self == 1) memory->put(0, bytes(50));
      memory->finish();
      memory->take();
    }
    // Rank 2 posts at 200: to rank 1 until 200 + 500 + 1000, to rank 0 from 700 on until 700 + 300 + 1000. Rank 1's 50
    // bytes reach rank 0 at 100 + 50 + 1000.
    EXPECT_EQ(clock.now_ns(), self == 0 ? 2000 : self == 1 ? 1700 : 200);
    const std::vector<Event>& events = tracer.trace().events;
    ASSERT_EQ(events.size(), 2U);
    if (self == 2) {
      EXPECT_EQ(events[1].verb, Verb::kSend);
      EXPECT_EQ(events[1].peer, 0);
      EXPECT_EQ(events[1].logical_bytes, 300);
      EXPECT_EQ(events[1].virtual_begin_ns, 700);
      EXPECT_EQ(events[1].virtual_end_ns, 2000);
    }
    if (self == 0) {
      EXPECT_EQ(events[0].verb, Verb::kRecv);
      EXPECT_EQ(events[0].peer, 1);
      EXPECT_EQ(events[0].virtual_end_ns, 1150);
      EXPECT_EQ(events[0].purpose, Purpose::kDispatch);
      EXPECT_EQ(events[1].peer, 2);
      EXPECT_EQ(events[0].virtual_exposed_ns + events[1].virtual_exposed_ns + events[0].virtual_peer_wait_ns +
                    events[1].virtual_peer_wait_ns,
                2000);
    }
  });
}

}  // namespace
}  // namespace ranklab
