// What the NCCL backend does when something fails, and that it works again afterwards: watchdog, aborts, time-outs,
// errors of the library, second runs and worlds at one store. Over the stand-ins; each failure costs the second for
// which rank 0 stays for the others.
#include <gmock/gmock.h>

#include <chrono>
#include <thread>

#include "core/comm/device_mesh.h"
#include "core/sim/aten.h"
#include "tests/conformance/cases.h"
#include "tests/cuda/stand_in/nccl_control.h"
#include "tests/cuda/stand_in/world.h"

namespace ranklab::stand_in {
namespace {

using conformance::whole_world;
using std::chrono::milliseconds;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

// Each is waited out once or twice. They bound the rest of the same run as well: long enough for a busy machine.
constexpr milliseconds kHang{5'000}, kRendezvous{5'000};

std::string in_text(milliseconds time) { return std::to_string(time.count()) + " ms"; }

CommunicatorPtr everyone(Endpoint& endpoint) { return endpoint.communicator(whole_world(endpoint)); }

at::Tensor ones(const Endpoint& endpoint, int64_t count) {
  return at::ones({count}, at::TensorOptions(at::kFloat).device(endpoint.device()));
}

std::string text(const std::optional<Error>& error) { return error ? error->what() : ""; }

// Every communicator is given back, and the next world works.
void expect_all_well_again() {
  EXPECT_EQ(live_communicators(), 0);
  ThreadsOverNccl(2, {}).run(
      [](Endpoint& endpoint) { EXPECT_EQ(everyone(endpoint)->all_reduce(ones(endpoint, 3)).sum().item<float>(), 6); });
}

TEST(NcclFailures, ACallThatOthersDoNotMakeIsATimeOutThatNamesIt) {
  ThreadsOverNccl world(2, {.hang_timeout = kHang, .rendezvous_timeout = milliseconds(20'000)});
  const auto errors = world.errors_of([](Endpoint& endpoint) {
    const CommunicatorPtr comm = everyone(endpoint);
    comm->all_reduce(ones(endpoint, 4));
    if (endpoint.global_rank() == 0) comm->all_gather(ones(endpoint, 5)).cpu();
  });
  ASSERT_TRUE(errors[0]);
  EXPECT_EQ(errors[0]->kind(), ErrorKind::kTimeout);
  EXPECT_THAT(text(errors[0]), AllOf(HasSubstr("cuda world, rank 0"), HasSubstr("no end of world[0 1] #1 all_gather"),
                                     HasSubstr("nccl_failures_test.cpp"), HasSubstr(in_text(kHang))));
  expect_all_well_again();
}

TEST(NcclFailures, CallsThatDifferEndInATimeOutOnBothSides) {
  ThreadsOverNccl world(2, {.hang_timeout = kHang, .rendezvous_timeout = milliseconds(20'000)});
  const auto errors = world.errors_of(
      [](Endpoint& endpoint) { everyone(endpoint)->all_reduce(ones(endpoint, 4 + endpoint.global_rank())).cpu(); });
  for (const auto& error : errors)
    EXPECT_THAT(text(error), AnyOf(HasSubstr("no end of world[0 1] #0 all_reduce"), HasSubstr("another rank failed")));
  EXPECT_THAT(text(errors[0]) + text(errors[1]), HasSubstr("no end of world[0 1] #0 all_reduce"));
  expect_all_well_again();
}

TEST(NcclFailures, ComparedCallsThatDifferAreNamedBeforeTheyStart) {
  ThreadsOverNccl world(2, {.check_calls = true});
  const auto errors = world.errors_of(
      [](Endpoint& endpoint) { everyone(endpoint)->all_reduce(ones(endpoint, 4 + endpoint.global_rank())).cpu(); });
  for (const auto& error : errors)
    EXPECT_THAT(text(error), AllOf(HasSubstr("members make different calls"), HasSubstr("[4]"), HasSubstr("[5]")));
  expect_all_well_again();
}

TEST(NcclFailures, ARankThatThrowsFreesThoseThatWaitForIt) {
  ThreadsOverNccl world(3, {});
  const auto errors = world.errors_of([](Endpoint& endpoint) {
    const CommunicatorPtr comm = everyone(endpoint);
    comm->all_reduce(ones(endpoint, 4));
    if (endpoint.global_rank() == 1) throw Error(ErrorKind::kNumeric, {.what = "the loss is NaN"});
    comm->all_reduce(ones(endpoint, 4)).cpu();
  });
  EXPECT_EQ(errors[1]->kind(), ErrorKind::kNumeric);
  for (const size_t rank : {0, 2})
    EXPECT_THAT(text(errors[rank]), AllOf(HasSubstr("another rank failed"), HasSubstr("rank 1: the loss is NaN")));
  expect_all_well_again();
}

TEST(NcclFailures, AnErrorThatTheLibraryFoundIsTheRanks) {
  ThreadsOverNccl world(2, {});
  const auto errors = world.errors_of([](Endpoint& endpoint) {
    const CommunicatorPtr comm = everyone(endpoint);
    comm->all_reduce(ones(endpoint, 4));
    if (endpoint.global_rank() == 1) {
      report_error(endpoint.device().index(), ncclInternalError);
      while (true) {
        comm->barrier();
        std::this_thread::sleep_for(milliseconds(1));
      }
    }
    while (true) comm->barrier();
  });
  EXPECT_THAT(text(errors[1]),
              AllOf(HasSubstr("NCCL failed while calls of world[0 1] were under way"), HasSubstr("internal error")));
  EXPECT_THAT(text(errors[0]), HasSubstr("another rank failed"));
  expect_all_well_again();
}

TEST(NcclFailures, ACommunicatorOfTooFewComesToAnEndThatNamesTheMissing) {
  ThreadsOverNccl world(2, {.hang_timeout = kHang, .rendezvous_timeout = kRendezvous});
  const auto errors = world.errors_of([](Endpoint& endpoint) {
    if (endpoint.global_rank() == 0) everyone(endpoint);
  });
  EXPECT_EQ(errors[0]->kind(), ErrorKind::kTimeout);
  EXPECT_THAT(text(errors[0]), HasSubstr("rank 1 did not arrive"));
  expect_all_well_again();
}

// A lane's receive is launched when its sender has posted the message, too; until then the host waits.
TEST(NcclFailures, AMessageThatIsNeverSentIsATimeOutThatNamesIt) {
  ThreadsOverNccl world(2, {.hang_timeout = kHang, .rendezvous_timeout = kRendezvous});
  const auto errors = world.errors_of([](Endpoint& endpoint) {
    const CommunicatorPtr comm = everyone(endpoint);
    comm->open_lanes({{0, 1, 1}});
    const at::Tensor data = ones(endpoint, 4);
    if (endpoint.global_rank() == 0) comm->send(data, 1, {0, 1});
    for (int tag = 0; endpoint.global_rank() == 1 && tag < 2; ++tag) comm->recv(data, 0, {tag, 1});
  });
  EXPECT_EQ(errors[1]->kind(), ErrorKind::kTimeout);
  EXPECT_THAT(text(errors[1]), AllOf(HasSubstr("no end of waiting for the other side of recv"),
                                     HasSubstr("nccl_failures_test.cpp"), HasSubstr(in_text(kRendezvous))));
  expect_all_well_again();
}

TEST(NcclFailures, APipelineWhoseMiddleRankThrowsComesToAnEnd) {
  ThreadsOverNccl world(4, {});
  const auto errors = world.errors_of([](Endpoint& endpoint) {
    const CommunicatorPtr comm = everyone(endpoint);
    const int rank = endpoint.global_rank();
    comm->open_lanes({{0, 1, 1}, {1, 2, 1}, {2, 3, 1}, {1, 0, 2}, {2, 1, 2}, {3, 2, 2}});
    for (int round = 0;; ++round) {
      at::Tensor data = ones(endpoint, 16);
      if (rank > 0) comm->recv(data, rank - 1, {round, 1});
      if (rank == 2 && round == 3) throw Error(ErrorKind::kNumeric, {.what = "the loss is NaN"});
      if (rank < 3) comm->send(data, rank + 1, {round, 1});
      if (rank < 3) comm->recv(data, rank + 1, {round, 2});
      if (rank > 0) comm->send(data, rank - 1, {round, 2});
    }
  });
  for (const size_t rank : {0, 1, 3}) EXPECT_THAT(text(errors[rank]), HasSubstr("rank 2: the loss is NaN"));
  EXPECT_EQ(errors[2]->kind(), ErrorKind::kNumeric);
  expect_all_well_again();
}

// NCCL reports a peer's death without naming it. The peer's own report, soon after, is the better error.
TEST(NcclFailures, ARemoteErrorWaitsForTheRankThatCausedIt) {
  ThreadsOverNccl world(2, {});
  const auto errors = world.errors_of([](Endpoint& endpoint) {
    const CommunicatorPtr comm = everyone(endpoint);
    comm->all_reduce(ones(endpoint, 4));
    if (endpoint.global_rank() == 0) {
      report_error(endpoint.device().index(), ncclRemoteError);
      comm->all_reduce(ones(endpoint, 4)).cpu();
    } else {
      std::this_thread::sleep_for(milliseconds(300));
      throw Error(ErrorKind::kNumeric, {.what = "the loss is NaN"});
    }
  });
  EXPECT_THAT(text(errors[0]), AllOf(HasSubstr("another rank failed"), HasSubstr("rank 1: the loss is NaN")));
  expect_all_well_again();
}

// Each run makes new communicators, under keys that no run before it has used.
TEST(NcclWorldRuns, SecondRunsAndSecondWorldsStartAfresh) {
  for (int world_number = 0; world_number < 2; ++world_number) {
    ThreadsOverNccl world(3, {});
    for (int run = 0; run < 3; ++run) {
      world.run([&](Endpoint& endpoint) {
        const CommunicatorPtr comm = everyone(endpoint), again = everyone(endpoint);
        const at::Tensor mine = ones(endpoint, 2).mul(endpoint.global_rank() + run);
        EXPECT_EQ(comm->all_reduce(mine.clone())[0].item<float>(), 3 + 3 * run);
        EXPECT_EQ(again->all_reduce(mine.clone())[0].item<float>(), 3 + 3 * run);
      });
      EXPECT_EQ(live_communicators(), 0);
    }
  }
}

}  // namespace
}  // namespace ranklab::stand_in
