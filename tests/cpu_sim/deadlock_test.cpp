// Deadlocks are detected immediately from the wait-for graph; ranks that are only slow are never reported.
#include <random>
#include <thread>

#include "tests/cpu_sim/faults.h"

namespace ranklab::cpu_sim_test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

class DeadlockTest : public testing::TestWithParam<Path> {};

TEST_P(DeadlockTest, BothReceiveFirst) {
  const Outcome outcome = run_world(options_of(GetParam(), 2), [](Endpoint&, Communicator& comm) {
    const at::Tensor x = at::ones({4});
    comm.recv(x, 1 - comm.rank());
    comm.send(x, 1 - comm.rank());
  });
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->kind(), ErrorKind::kCommunication);
  EXPECT_THAT(outcome.text(), HasSubstr("deadlock: each rank waits for the next one, in a circle"));
  EXPECT_THAT(
      outcome.text(),
      ContainsRegex("rank (0|1) waits in recv\\(from (1|0), tag 0\\) fp32 \\[4\\] at deadlock_test.cpp:[0-9]+ "
                    "\\(world\\[0 1\\] message . -> . tag 0 call #0\\) -> for rank (1|0) waits in recv.* -> for rank"));
  EXPECT_LT(outcome.seconds, 1.0);
}

// tp and dp of a 2 x 2 mesh in different orders: rank 0 waits for 1 (tp), 1 for 3 (dp), 3 for 2 (tp), 2 for 0 (dp).
TEST_P(DeadlockTest, CycleAcrossAxes) {
  const Outcome outcome = run_world(options_of(GetParam(), 4), [](Endpoint& endpoint, Communicator&) {
    const int rank = endpoint.global_rank();
    const auto tp = endpoint.communicator(group_of(rank < 2 ? std::vector{0, 1} : std::vector{2, 3}, rank, Axis::kTp));
    const auto dp = endpoint.communicator(group_of({rank % 2, rank % 2 + 2}, rank, Axis::kDp));
    const at::Tensor x = at::ones({4});
    if (rank == 0 || rank == 3) tp->all_reduce(x), dp->all_reduce(x);
    if (rank == 1 || rank == 2) dp->all_reduce(x), tp->all_reduce(x);
  });
  EXPECT_THAT(outcome.text(), HasSubstr("deadlock: each rank waits for the next one, in a circle"));
  for (const char* part : {"rank 0 waits in all_reduce", "rank 1 waits in", "rank 2 waits in", "rank 3 waits in",
                           "(tp[0 1] call #0)", "(dp[1 3] call #0)", "(tp[2 3] call #0)", "(dp[0 2] call #0)"})
    EXPECT_THAT(outcome.text(), HasSubstr(part));
  EXPECT_LT(outcome.seconds, 1.0);
}

// The same program with async calls has no cycle.
TEST_P(DeadlockTest, AsyncCallsBreakTheCycle) {
  const Outcome outcome = run_world(options_of(GetParam(), 4), [](Endpoint& endpoint, Communicator&) {
    const int rank = endpoint.global_rank();
    const auto tp = endpoint.communicator(group_of(rank < 2 ? std::vector{0, 1} : std::vector{2, 3}, rank, Axis::kTp));
    const auto dp = endpoint.communicator(group_of({rank % 2, rank % 2 + 2}, rank, Axis::kDp));
    Communicator& first = rank == 0 || rank == 3 ? *tp : *dp;
    Communicator& second = rank == 0 || rank == 3 ? *dp : *tp;
    const WorkPtr a = first.all_reduce_async(at::ones({100'000}));
    const WorkPtr b = second.all_reduce_async(at::ones({100'000}));
    EXPECT_EQ(a->wait()[0].item<float>(), 2);
    EXPECT_EQ(b->wait()[0].item<float>(), 2);
  });
  EXPECT_FALSE(outcome.error) << outcome.text();
}

TEST_P(DeadlockTest, MemberHasReturned) {
  const Outcome outcome = run_world(options_of(GetParam(), 3), [](Endpoint& endpoint, Communicator& comm) {
    comm.barrier();
    if (endpoint.global_rank() == 1) return;
    comm.all_reduce(at::ones({4}));
  });
  EXPECT_THAT(outcome.text(), HasSubstr("deadlock: a member will never make this call"));
  EXPECT_THAT(outcome.text(),
              ContainsRegex("rank (0|2) waits in all_reduce\\(sum\\) fp32 \\[4\\] at deadlock_test.cpp:"));
  EXPECT_THAT(outcome.text(), HasSubstr("call #1) -> for rank 1, whose body has returned"));
  EXPECT_LT(outcome.seconds, 1.0);
}

TEST_P(DeadlockTest, SendThatNobodyReceives) {
  const Outcome outcome = run_world(options_of(GetParam(), 2), [](Endpoint& endpoint, Communicator& comm) {
    if (endpoint.global_rank() == 0) comm.send(at::ones({4}), 1);
  });
  EXPECT_THAT(outcome.text(), HasSubstr("rank 0 waits in send(to 1, tag 0) fp32 [4]"));
  EXPECT_THAT(outcome.text(), HasSubstr("-> for rank 1, whose body has returned"));
}

TEST_P(DeadlockTest, AsyncCallThatNobodyCompletes) {
  const Outcome outcome = run_world(options_of(GetParam(), 2), [](Endpoint& endpoint, Communicator& comm) {
    if (endpoint.global_rank() == 1) comm.all_reduce_async(at::ones({4}));
  });
  EXPECT_THAT(outcome.text(), HasSubstr("a call was never completed; got rank 1: all_reduce(sum) fp32 [4]"));
  EXPECT_THAT(outcome.text(), HasSubstr("never made by rank 0"));
}

// Control: many ranks, random sleeps in front of every call, several groups. Nothing may be reported.
TEST_P(DeadlockTest, SlowRanksAreNotReported) {
  ThreadWorldOptions options = options_of(GetParam(), 6);
  options.hang_timeout = std::chrono::milliseconds(3000);
  const Outcome outcome = run_world(options, [](Endpoint& endpoint, Communicator& comm) {
    const int rank = endpoint.global_rank();
    std::mt19937 random(static_cast<unsigned>(rank));
    const auto doze = [&] {
      if (random() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
    };
    const auto pair = endpoint.communicator(group_of({rank / 2 * 2, rank / 2 * 2 + 1}, rank, Axis::kTp));
    for (int round = 0; round < 40; ++round) {
      doze();
      comm.all_reduce(at::ones({10}));
      doze();
      pair->all_gather(at::ones({10}));
      doze();
      const at::Tensor x = at::ones({3});
      pair->rank() == round % 2 ? comm.send(x, rank ^ 1) : static_cast<void>(comm.recv(x, rank ^ 1));
    }
    // One rank is late by half of the hang limit, the others wait. The other half is for a busy machine.
    if (rank == 3) std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    comm.barrier();
  });
  EXPECT_FALSE(outcome.error) << outcome.text();
}

INSTANTIATE_TEST_SUITE_P(Paths, DeadlockTest, testing::ValuesIn(kPaths), path_name);

}  // namespace
}  // namespace ranklab::cpu_sim_test
