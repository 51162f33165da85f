#include "backends/cuda/nccl/rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>

#include "backends/cuda/nccl/call_compare.h"
#include "backends/cuda/nccl/heartbeat.h"
#include "core/base/error.h"
#include "core/sim/aten.h"
#include "tests/eventually.h"
#include "tests/free_port.h"

namespace ranklab {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

// What need not happen soon on a busy machine.
constexpr milliseconds kPatience{60'000};

// Runs the body as two ranks, each with its rendezvous; returns what each threw ("" for nothing).
std::vector<std::string> run_pair(const std::function<void(int rank, Rendezvous&)>& body, milliseconds timeout) {
  const int port = free_port();
  std::vector<std::string> errors(2);
  const auto rank_main = [&](int rank) {
    ProcessEnv env;
    env.rank = rank;
    env.world_size = 2;
    env.master_addr = "127.0.0.1";
    env.master_port = port;
    Rendezvous rendezvous(env, timeout);
    try {
      body(rank, rendezvous);
    } catch (const Error& error) {
      errors[static_cast<size_t>(rank)] = error.what();
    }
    try {
      rendezvous.finish();
    } catch (const Error&) {
      // The failure that the body reported: the other rank has it by then, since each store outlives its world.
    }
  };
  std::thread other(rank_main, 1);
  rank_main(0);
  other.join();
  return errors;
}

TEST(Rendezvous, CarriesValuesBetweenRanks) {
  const auto errors = run_pair(
      [](int rank, Rendezvous& rendezvous) {
        const std::string binary("a\0b\xFF", 4);
        if (rank == 0) rendezvous.set("key", binary);
        if (rank == 1) {
          EXPECT_EQ(rendezvous.get("key", 0), binary);
        }
      },
      kPatience);
  EXPECT_THAT(errors, ::testing::ElementsAre("", ""));
}

TEST(Rendezvous, NamesTheRankThatDidNotCome) {
  const auto errors = run_pair(
      [](int rank, Rendezvous& rendezvous) {
        if (rank == 0) rendezvous.get("never", 1);
      },
      milliseconds(2'000));
  EXPECT_THAT(errors[0], AllOf(HasSubstr("rank 1 did not arrive"), HasSubstr("2000 ms"), HasSubstr("never")));
}

TEST(Rendezvous, AFailureReachesTheWaitingRank) {
  const auto errors = run_pair(
      [](int rank, Rendezvous& rendezvous) {
        if (rank == 0) rendezvous.get("never", 1);
        if (rank == 1) rendezvous.report_failure("out of luck");
      },
      kPatience);
  EXPECT_THAT(errors[0], AllOf(HasSubstr("another rank failed"), HasSubstr("rank 1: out of luck")));
}

TEST(Rendezvous, AGenerationDoesNotReadTheOneBefore) {
  const auto errors = run_pair(
      [](int rank, Rendezvous& rendezvous) {
        rendezvous.set("id/" + std::to_string(rank), "old");
        EXPECT_EQ(rendezvous.get("id/" + std::to_string(1 - rank), 1 - rank), "old");
        rendezvous.finish();
        rendezvous.next_generation();
        if (rank == 0) {
          EXPECT_FALSE(rendezvous.look("id/0").has_value());
          rendezvous.set("id/0", "new");
        } else {
          EXPECT_EQ(rendezvous.get("id/0", 0), "new");
        }
      },
      kPatience);
  EXPECT_THAT(errors, ::testing::ElementsAre("", ""));
}

TEST(Rendezvous, ASecondWorldAtTheSameStoreStartsAfresh) {
  const int port = free_port();
  const auto world = [port](int rank, const std::string& value) {
    ProcessEnv env;
    env.rank = rank;
    env.world_size = 2;
    env.master_addr = "127.0.0.1";
    env.master_port = port;
    Rendezvous rendezvous(env, kPatience);
    if (rank == 0) rendezvous.set("value", value);
    EXPECT_EQ(rendezvous.get("value", 0), value);
    rendezvous.finish();
  };
  const auto both = [&](int rank) {
    world(rank, "first");
    world(rank, "second");
  };
  std::thread other(both, 1);
  both(0);
  other.join();
}

// Silent for a hundred beats: on a busy machine some come late.
HeartbeatOptions quick_heart() { return {.period = milliseconds(20), .silence = milliseconds(2'000)}; }

TEST(Heartbeat, ARankThatFallsSilentIsNamedToAll) {
  std::vector<std::string> found(2);
  std::atomic<bool> told = false;
  run_pair(
      [&](int rank, Rendezvous& rendezvous) {
        Failure failure;
        Heartbeat heart(rendezvous, failure, quick_heart());
        if (rank == 1) {
          std::this_thread::sleep_for(milliseconds(200));
          heart.stop();  // as a killed process does
        }
        if (rank == 0) {
          EXPECT_TRUE(failure.wait_for(kPatience));
          found[0] = failure.get()->what();
          EXPECT_TRUE(eventually([&] { return told.load(); })) << "its heart tells the other";
        } else {
          try {
            rendezvous.get("never", 0);
          } catch (const Error& error) {
            found[1] = error.what();
          }
          told = true;
        }
      },
      kPatience);
  EXPECT_THAT(found[0], AllOf(HasSubstr("rank 1 is gone"), HasSubstr("no sign of life")));
  EXPECT_THAT(found[1], AllOf(HasSubstr("another rank failed"), HasSubstr("rank 0:"), HasSubstr("rank 1 is gone")));
}

// When something hangs, before the silence is long enough to say that a rank is gone.
TEST(Heartbeat, WhoIsSilentNowIsFoundAtOnce) {
  std::string all_there, one_silent;
  run_pair(
      [&](int rank, Rendezvous& rendezvous) {
        Failure failure;
        HeartbeatOptions patient = quick_heart();
        patient.silence = milliseconds(60'000);
        Heartbeat heart(rendezvous, failure, patient);
        rendezvous.set("came" + std::to_string(rank), "1");
        rendezvous.get("came" + std::to_string(1 - rank), 1 - rank);
        HeartbeatOptions slow = patient;
        slow.period = milliseconds(1'000);  // a busy machine may hold the other's beat for as long
        if (rank == 0) {
          all_there = silent_ranks(rendezvous, slow);
          rendezvous.set("looked", "1");
          rendezvous.get("stopped", 1);
          one_silent = silent_ranks(rendezvous, slow);
          rendezvous.set("looked again", "1");
        } else {
          rendezvous.get("looked", 0);
          heart.stop();
          rendezvous.set("stopped", "1");
          rendezvous.get("looked again", 0);
        }
      },
      kPatience);
  EXPECT_EQ(all_there, "");
  EXPECT_EQ(one_silent, "no sign of life of rank 1");
}

TEST(Heartbeat, ARankThatFinishedMayBeSilent) {
  run_pair(
      [&](int rank, Rendezvous& rendezvous) {
        Failure failure;
        Heartbeat heart(rendezvous, failure, quick_heart());
        std::this_thread::sleep_for(milliseconds(100));
        if (rank == 1) {
          heart.stop();
          rendezvous.finish();
        } else {
          EXPECT_FALSE(failure.wait_for(quick_heart().silence * 3 / 2)) << failure.get()->what();
        }
      },
      kPatience);
}

TEST(Heartbeat, AFailureIsReportedAndHeard) {
  std::string heard;
  std::atomic<bool> told = false;
  run_pair(
      [&](int rank, Rendezvous& rendezvous) {
        Failure failure;
        Heartbeat heart(rendezvous, failure, quick_heart());
        if (rank == 1) {
          failure.set(Error(ErrorKind::kNumeric, {.what = "the loss is NaN"}), true);
          EXPECT_TRUE(eventually([&] { return told.load(); })) << "its heart tells the other";
        } else {
          EXPECT_TRUE(failure.wait_for(kPatience));
          heard = failure.get()->what();
          told = true;
        }
      },
      kPatience);
  EXPECT_THAT(heard, AllOf(HasSubstr("another rank failed"), HasSubstr("rank 1:"), HasSubstr("the loss is NaN")));
}

TEST(Rendezvous, AWorldOfOneOpensNoSocket) {
  Rendezvous rendezvous(ProcessEnv{}, milliseconds(1));
  rendezvous.check_failure();
  rendezvous.report_failure("nobody hears");
  rendezvous.finish();
}

TEST(Rendezvous, AStoreThatIsNotThereIsSaid) {
  ProcessEnv env;
  env.rank = 1;
  env.world_size = 2;
  env.master_addr = "127.0.0.1";
  env.master_port = free_port();
  EXPECT_THROW(
      {
        try {
          Rendezvous(env, milliseconds(1'000));
        } catch (const Error& error) {
          EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
          EXPECT_THAT(error.what(), HasSubstr("127.0.0.1:"));
          throw;
        }
      },
      Error);
}

Call all_reduce_of(const at::Tensor& tensor) {
  Call call;
  call.verb = Verb::kAllReduce;
  call.input = call.output = tensor;
  call.site = std::source_location::current();
  return call;
}

TEST(CheckCalls, EqualCallsPassAndOthersAreShownSideBySide) {
  const auto compare = [](const at::Tensor& first, const at::Tensor& second) {
    return run_pair(
        [&](int rank, Rendezvous& rendezvous) {
          compare_calls(rendezvous, {Axis::kDp, {0, 1}, rank}, 0, all_reduce_of(rank == 0 ? first : second), 5);
        },
        kPatience);
  };
  EXPECT_THAT(compare(at::zeros({4}), at::zeros({4})), ::testing::ElementsAre("", ""));
  for (const std::string& error : compare(at::zeros({4}), at::zeros({4}, at::kInt))) {
    EXPECT_THAT(error, AllOf(HasSubstr("dp[0 1] #5"), HasSubstr("Float [4]"), HasSubstr("Int [4]"),
                             HasSubstr("rendezvous_test.cpp")));
  }
}

TEST(CheckCalls, RowsOfAnAllToAllAreComparedPairByPair) {
  const auto exchange = [](std::vector<int64_t> sent, std::vector<int64_t> received) {
    Call call;
    call.verb = Verb::kAllToAll;
    call.input = at::zeros({sent[0] + sent[1], 2});
    call.output = at::zeros({received[0] + received[1], 2});
    call.input_splits = std::move(sent);
    call.output_splits = std::move(received);
    call.site = std::source_location::current();
    return call;
  };
  const auto compare = [&](const Call& first, const Call& second) {
    return run_pair(
        [&](int rank, Rendezvous& rendezvous) {
          compare_calls(rendezvous, {Axis::kEp, {0, 1}, rank}, 0, rank == 0 ? first : second, 3);
        },
        kPatience);
  };
  EXPECT_THAT(compare(exchange({1, 2}, {1, 5}), exchange({5, 0}, {2, 0})), ::testing::ElementsAre("", ""));
  // Rank 0 sends two rows to rank 1, which wants three.
  for (const std::string& error : compare(exchange({1, 2}, {1, 5}), exchange({5, 0}, {3, 0})))
    EXPECT_THAT(error, AllOf(HasSubstr("ep[0 1] #3"), HasSubstr("sending rows [1 2]"), HasSubstr("receiving [3 0]")));
}

}  // namespace
}  // namespace ranklab
