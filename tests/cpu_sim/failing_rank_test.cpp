// A rank that throws or hangs, anywhere: the world ends quickly and names it.
#include <dlfcn.h>
#include <gloo/allreduce.h>

#include <atomic>
#include <regex>
#include <stdexcept>
#include <thread>

#include "tests/cpu_sim/faults.h"

namespace ranklab::cpu_sim_test {

// Exported, so that a report can name it; a rank that slept in turns could be found between two sleeps.
[[gnu::noinline]] void spin_until(const std::atomic<bool>& raised) {
  while (!raised) {
  }
}

namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr int kStepOps = 6;

// Three steps of six calls; `before` runs in front of each with its number.
void program(Communicator& comm, const std::function<void(int)>& before) {
  const int n = comm.size();
  for (int step = 0; step < 3; ++step) {
    int op = step * kStepOps;
    const at::Tensor x = at::ones({n, 4});
    before(op++);
    comm.all_reduce(x);
    before(op++);
    const WorkPtr pending = comm.all_gather_async(x);
    before(op++);
    comm.reduce_scatter(x);
    before(op++);
    comm.all_to_all(x);
    before(op++);
    if (comm.rank() == 0) comm.send(x, n - 1);
    if (comm.rank() == n - 1) comm.recv(x, 0);
    before(op++);
    pending->wait();
    comm.broadcast(x, step % n);
  }
}

// ThreadSanitizer delivers a signal while the thread is in a function of its own, which the program's code calls for
// every access: these come before the function that we look for.
std::string without_sanitizer_frames(const std::string& text) {
  static const std::regex kFrame(R"((libtsan\.so[.0-9]*\+0x[0-9a-f]+|__tsan_\w+), called by )");
  return std::regex_replace(text, kFrame, "");
}

class FailingRankTest : public testing::TestWithParam<Path> {};

TEST_P(FailingRankTest, ThrowAtEveryCallOfEveryRank) {
  constexpr int kRanks = 3;
  double slowest = 0;
  for (int culprit = 0; culprit < kRanks; ++culprit) {
    for (int at_op = 0; at_op < 3 * kStepOps; ++at_op) {
      const Outcome outcome = run_world(options_of(GetParam(), kRanks), [&](Endpoint& endpoint, Communicator& comm) {
        program(comm, [&](int op) {
          if (endpoint.global_rank() == culprit && op == at_op) throw std::runtime_error("op " + std::to_string(op));
        });
      });
      ASSERT_TRUE(outcome.error) << culprit << " " << at_op;
      EXPECT_EQ(outcome.text(),
                "[rank " + std::to_string(culprit) + "] the rank threw; got op " + std::to_string(at_op));
      slowest = std::max(slowest, outcome.seconds);
    }
  }
  EXPECT_LT(slowest, 1.0);
}

TEST_P(FailingRankTest, PeersAreToldWhoFailed) {
  std::atomic<int> told{0};
  const Outcome outcome = run_world(options_of(GetParam(), 4), [&](Endpoint& endpoint, Communicator& comm) {
    if (endpoint.global_rank() == 2)
      throw Error(ErrorKind::kNumeric, {.where = "loss", .what = "not finite", .got = "nan", .want = {}, .fix = {}});
    try {
      comm.all_reduce(at::ones({4}));
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("aborted because rank 2 failed; got [rank 2, loss] not finite; got nan"));
      EXPECT_THROW(comm.barrier(), Error) << "a poisoned world refuses later calls";
      ++told;
      throw;
    }
  });
  EXPECT_EQ(told, 3);
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->kind(), ErrorKind::kNumeric) << "the first error's kind decides the exit code";
  EXPECT_EQ(outcome.text(), "[rank 2, loss] not finite; got nan");
}

TEST_P(FailingRankTest, TorchErrorsAreNamedWithoutTheirBacktrace) {
  const Outcome outcome = run_world(options_of(GetParam(), 2), [](Endpoint& endpoint, Communicator& comm) {
    if (endpoint.global_rank() == 1) at::matmul(at::ones({2, 3}), at::ones({2, 3}));
    comm.barrier();
  });
  EXPECT_THAT(outcome.text(), HasSubstr("[rank 1] the rank threw; got mat1 and mat2 shapes cannot be multiplied"));
  EXPECT_THAT(outcome.text(), testing::Not(HasSubstr("frame #")));
}

TEST_P(FailingRankTest, AWorldRunsAgainAfterAnError) {
  const auto world = make_thread_world(options_of(GetParam(), 2));
  EXPECT_THROW(world->run([](Endpoint&) { throw std::runtime_error("x"); }), Error);
  world->run([](Endpoint& endpoint) {
    EXPECT_EQ(endpoint.communicator(everyone(endpoint))->all_reduce(at::ones({1})).item<float>(), 2);
  });
}

TEST_P(FailingRankTest, HungRankIsNamed) {
  ThreadWorldOptions options = options_of(GetParam(), 3);
  options.hang_timeout = kHang;
  options.grace = milliseconds(100);
  std::atomic<bool> release{false};
  std::string stuck;
  options.on_stuck = [&](const Error& error) {
    stuck = error.what();
    release = true;
  };
  const auto begin = std::chrono::steady_clock::now();
  const Outcome outcome = run_world(options, [&](Endpoint& endpoint, Communicator& comm) {
    comm.all_gather(at::ones({2}));
    if (endpoint.global_rank() == 1) spin_until(release);
    comm.all_reduce(at::ones({2}));
  });
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->kind(), ErrorKind::kTimeout);
  EXPECT_EQ(exit_code(outcome.error->kind()), 6);
  for (const char* part :
       {"[rank 1] the rank is hung", "it last finished all_gather at failing_rank_test.cpp:", "(world[0 1 2] call #0)",
        "waits in all_reduce(sum) fp32 [2]", "; it is in ranklab::cpu_sim_test::spin_until, called by "})
    EXPECT_THAT(without_sanitizer_frames(outcome.text()), HasSubstr(part));
  EXPECT_EQ(stuck, outcome.text());
  EXPECT_GT(std::chrono::steady_clock::now() - begin, kHang + options.grace);
  EXPECT_LT(outcome.seconds, 1.6) << "the limit, the grace time and less than a second";
}

// A hung rank that makes its next call in time gets the error, and on_stuck is not needed.
TEST_P(FailingRankTest, LateRankIsToldThatTheWorldGaveUp) {
  ThreadWorldOptions options = options_of(GetParam(), 2);
  options.hang_timeout = kHang;
  options.grace = milliseconds(30'000);  // its next call may have to wait for a processor
  options.on_stuck = [](const Error&) { FAIL() << "the rank came back"; };
  std::string told;
  std::atomic<bool> given_up = false;  // as its peer has seen
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  const Outcome outcome = run_world(options, [&](Endpoint& endpoint, Communicator& comm) {
    try {
      if (endpoint.global_rank() == 0)
        while (!given_up && std::chrono::steady_clock::now() < deadline) std::this_thread::sleep_for(milliseconds(1));
      comm.barrier();
    } catch (const Error& error) {
      given_up = true;
      if (endpoint.global_rank() == 0) told = error.what();
      throw;
    }
  });
  EXPECT_THAT(told, HasSubstr("[rank 0] aborted because rank 0 failed; got [rank 0] the rank is hung"));
  EXPECT_EQ(outcome.error->kind(), ErrorKind::kTimeout);
}

TEST_P(FailingRankTest, NoHangTimeoutMeansNoReport) {
  ThreadWorldOptions options = options_of(GetParam(), 2);
  options.hang_timeout = milliseconds(0);
  const Outcome outcome = run_world(options, [](Endpoint& endpoint, Communicator& comm) {
    if (endpoint.global_rank() == 0) std::this_thread::sleep_for(milliseconds(150));
    comm.barrier();
  });
  EXPECT_FALSE(outcome.error) << outcome.text();
}

INSTANTIATE_TEST_SUITE_P(Paths, FailingRankTest, testing::ValuesIn(kPaths), path_name);

// libtorch_cpu.so exports its own, newer gloo:: symbols; ours must come from libgloo.
TEST(GlooLinkTest, GlooIsLibgloo) {
  Dl_info info{};
  ASSERT_NE(
      dladdr(reinterpret_cast<void*>(static_cast<void (*)(const gloo::AllreduceOptions&)>(&gloo::allreduce)), &info),
      0);
  EXPECT_THAT(info.dli_fname, HasSubstr("libgloo.so"));
}

TEST(ThreadWorldTest, RefusesBadArguments) {
  EXPECT_THROW(make_thread_world({.size = 0}), Error);
  EXPECT_THROW(make_thread_world({.size = 1000}), Error);
  EXPECT_THROW(make_thread_world({.hang_timeout = milliseconds(-1)}), Error);
  const auto foreign_group = [](Endpoint& endpoint, Communicator&) { endpoint.communicator(group_of({0, 7}, 0)); };
  EXPECT_THAT(run_world({.size = 2}, foreign_group).text(), HasSubstr("not a group of this world; got world[0 7]"));
  const auto not_a_member = [](Endpoint& endpoint, Communicator&) {
    if (endpoint.global_rank() == 1) endpoint.communicator(group_of({0}, 0));
  };
  EXPECT_THAT(run_world({.size = 2}, not_a_member).text(), HasSubstr("[rank 1, communicator] this rank"));
}

TEST(ThreadWorldTest, DescribesItself) {
  EXPECT_EQ(make_thread_world({.size = 8})->describe(), "8 rank threads, Gloo in process, direct reductions");
  EXPECT_EQ(make_thread_world({.size = 1, .collectives = Collectives::kGloo})->describe(),
            "1 rank thread, Gloo in process");
}

TEST(ThreadWorldTest, RefusesTensorsOfOtherDevices) {
  const auto meta = [](Endpoint&, Communicator& comm) { comm.all_reduce(at::empty({2}, at::device(at::kMeta))); };
  EXPECT_THAT(run_world({.size = 2}, meta).text(), HasSubstr("on another device than the ranks; got meta; want cpu"));
}

}  // namespace
}  // namespace ranklab::cpu_sim_test
