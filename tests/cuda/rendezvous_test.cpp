#include "backends/cuda/rendezvous.h"

#include <ATen/ATen.h>
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "backends/cuda/nccl_communicator.h"
#include "core/base/error.h"

namespace ranklab {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

int free_port() {
  const int handle = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  bind(handle, reinterpret_cast<sockaddr*>(&address), size);
  getsockname(handle, reinterpret_cast<sockaddr*>(&address), &size);
  close(handle);
  return ntohs(address.sin_port);
}

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
    rendezvous.finish();
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
      milliseconds(20'000));
  EXPECT_THAT(errors, ::testing::ElementsAre("", ""));
}

TEST(Rendezvous, NamesTheRankThatDidNotCome) {
  const auto errors = run_pair(
      [](int rank, Rendezvous& rendezvous) {
        if (rank == 0) rendezvous.get("never", 1);
      },
      milliseconds(700));
  EXPECT_THAT(errors[0], AllOf(HasSubstr("rank 1 did not come"), HasSubstr("700 ms"), HasSubstr("never")));
}

TEST(Rendezvous, AFailureReachesTheWaitingRank) {
  const auto errors = run_pair(
      [](int rank, Rendezvous& rendezvous) {
        if (rank == 0) rendezvous.get("never", 1);
        if (rank == 1) rendezvous.report_failure("out of luck");
      },
      milliseconds(20'000));
  EXPECT_THAT(errors[0], AllOf(HasSubstr("another rank failed"), HasSubstr("rank 1: out of luck")));
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
        milliseconds(20'000));
  };
  EXPECT_THAT(compare(at::zeros({4}), at::zeros({4})), ::testing::ElementsAre("", ""));
  for (const std::string& error : compare(at::zeros({4}), at::zeros({4}, at::kInt))) {
    EXPECT_THAT(error, AllOf(HasSubstr("dp[0 1] #5"), HasSubstr("Float [4]"), HasSubstr("Int [4]"),
                             HasSubstr("rendezvous_test.cpp")));
  }
}

}  // namespace
}  // namespace ranklab
