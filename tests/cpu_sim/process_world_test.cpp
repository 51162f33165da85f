// Ranks as processes: the same results as threads (conformance), the same error texts, and no process left waiting for
// one that is gone, stopped, absent or hostile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <functional>

#include "backends/cpu_sim/processes/control.h"
#include "backends/cpu_sim/processes/wire.h"
#include "backends/cpu_sim/transport/frame.h"
#include "backends/cpu_sim/transport/handshake.h"
#include "backends/cpu_sim/transport/own_user_socket.h"
#include "tests/cpu_sim/processes.h"

namespace ranklab::cpu_sim_test {
namespace {

using std::chrono::milliseconds;
using testing::ContainsRegex;
using testing::HasSubstr;

std::vector<Ended> run(const Processes::Options& options) {
  Processes processes(options);
  processes.start_all();
  return processes.wait();
}

// Everyone ends with this code; rank 0 shows the error and the others know that it does.
void expect_failure(const std::vector<Ended>& all, int exit_code, const std::vector<std::string>& parts) {
  for (size_t rank = 0; rank < all.size(); ++rank) {
    EXPECT_EQ(all[rank].exit_code, exit_code) << rank << ": " << all[rank].output;
    EXPECT_THAT(all[rank].output, HasSubstr(rank == 0 ? "error: " : "elsewhere: "));
    for (const std::string& part : parts) EXPECT_THAT(all[rank].output, HasSubstr(part));
  }
}

TEST(ProcessWorld, Conformance) {
  for (const int size : {2, 3}) {
    for (const Ended& rank : run({.mode = "conformance", .size = size})) EXPECT_EQ(rank.exit_code, 0) << rank.output;
  }
}

TEST(ProcessWorld, AMismatchReadsAsInAThreadWorld) {
  const std::vector<Ended> all = run({.mode = "mismatch"});
  expect_failure(
      all, 5,
      {"world[0 1 2] call #1] members disagree on the verb", ": all_reduce(sum) fp32 [4] at process_world_main.cpp:",
       ": broadcast(root 0) fp32 [4] at process_world_main.cpp:"});
  const std::vector<Ended> message = run({.mode = "message_mismatch", .size = 2});
  expect_failure(message, 5, {"members disagree on the shape; got rank 0: send(to 1, tag 7) fp32 [4] at "});
}

TEST(ProcessWorld, DeadlocksAreFoundAtOnce) {
  const std::vector<Ended> all = run({.mode = "deadlock"});
  expect_failure(all, 5, {"deadlock: each rank waits for the next one, in a circle", "waits in recv(from "});
  const std::vector<Ended> missing = run({.mode = "missing_call"});
  expect_failure(missing, 5,
                 {"deadlock: a member will never make this call", "-> for rank 1, whose body has returned"});
  const std::vector<Ended> dropped = run({.mode = "dropped", .size = 2});
  expect_failure(dropped, 5, {"a call was never completed", "send(to 1, tag 0) fp32 [4]", "never made by rank 1"});
}

TEST(ProcessWorld, ARankThatThrowsIsNamedEverywhere) {
  expect_failure(run({.mode = "throw"}), 7, {"[rank 2, loss] not finite; got nan"});
}

// A rank that is ready early may fail while another still connects: that one too reports the error, not that it
// stopped.
TEST(ProcessWorld, ARankThatThrowsWhileAnotherConnectsIsNamed) {
  Processes processes({.mode = "throw", .size = 2});
  processes.start(0);
  cpu_sim::Control early({.address = "127.0.0.1",
                          .port = processes.port(),
                          .token = "0123456789abcdef",
                          .run_id = {},
                          .rank = 1,
                          .world_size = 2});
  early.wait_for_start();
  Packer packer;
  cpu_sim::pack_error(packer, Error(ErrorKind::kNumeric, {.where = "loss", .what = "not finite", .got = "nan"}));
  early.send(cpu_sim::FrameType::kFailed, packer.bytes());
  expect_failure(processes.wait(), 7, {"[rank 1, loss] not finite; got nan"});
}

TEST(ProcessWorld, AHungRankIsNamed) {
  const std::vector<Ended> all = run({.mode = "hang", .hang_ms = 1'000});
  for (const Ended& rank : all) EXPECT_EQ(rank.exit_code, 6) << "also the one that sleeps for good: " << rank.output;
  for (const char* part : {"[rank 1] the rank is hung", "it last finished all_gather at process_world_main.cpp:",
                           "waits in all_reduce(sum) fp32 [4]"})
    EXPECT_THAT(all[0].output, HasSubstr(part));
  // glibc 2.41 makes the call in functions of its own that it does not export.
  for (const char* part :
       {"ranklab: rank 1 does not return: it is in ", "clock_nanosleep, called by nanosleep, called by "})
    EXPECT_THAT(all[1].output, HasSubstr(part));
}

void kill_one(const std::string& mode, int victim, int signal, double limit_s, int code, const std::string& what) {
  Processes processes({.mode = mode});
  std::vector<int> pids;
  for (int rank = 0; rank < 3; ++rank) pids.push_back(processes.start(rank));
  ASSERT_TRUE(processes.wait_ready());
  processes.start_clock();
  ::kill(pids[static_cast<size_t>(victim)], signal);
  processes.wait_until(1);
  ::kill(pids[static_cast<size_t>(victim)], SIGKILL);  // a stopped one stays
  const std::vector<Ended> all = processes.wait();
  for (int rank = 0; rank < 3; ++rank) {
    if (rank == victim) continue;
    const Ended& ended = all[static_cast<size_t>(rank)];
    EXPECT_EQ(ended.exit_code, code) << mode << " " << victim << ": " << ended.output;
    EXPECT_LT(ended.seconds, limit_s) << mode << " " << victim;
    const bool shown = ended.output.find(what) != std::string::npos;
    // Ranks that were computing exit at once: rank 0 has then reported the error for all, unless rank 0 itself is gone.
    EXPECT_TRUE(shown || (rank != 0 && victim != 0)) << ended.output;
  }
}

TEST(ProcessWorld, AKilledProcessEndsAllWithinASecond) {
  kill_one("busy", 0, SIGKILL, 1.0, 5, "[rank 0] the rank's process");
  kill_one("busy", 2, SIGKILL, 1.0, 5, "[rank 2] the rank's process");
  kill_one("computing", 1, SIGKILL, 1.0, 5, "[rank 1] the rank's process");
}

TEST(ProcessWorld, AStoppedProcessEndsAllWithinThreeSeconds) {
  kill_one("busy", 1, SIGSTOP, 3.0, 6, "[rank 1] the rank's process does not answer; got silence for ");
  kill_one("busy", 0, SIGSTOP, 3.0, 6, "[rank 0] the rank's process, which coordinates the others, does not answer");
}

// As by Ctrl-Z, whose fg finds the run as it was.
TEST(ProcessWorld, ATimeInWhichAllAreStoppedIsNoHang) {
  constexpr int kHangMs = 3'000;
  Processes processes({.mode = "pause", .hang_ms = kHangMs});
  std::vector<int> pids;
  for (int rank = 0; rank < 3; ++rank) pids.push_back(processes.start(rank));
  ASSERT_TRUE(processes.wait_ready());
  std::this_thread::sleep_for(milliseconds(200));  // ranks 0 and 2 wait for rank 1, which computes for a second
  for (const int pid : pids) ::kill(pid, SIGSTOP);
  std::this_thread::sleep_for(milliseconds(kHangMs + 500));
  for (const int pid : pids) ::kill(pid, SIGCONT);
  for (const Ended& rank : processes.wait()) EXPECT_EQ(rank.exit_code, 0) << rank.output;
}

TEST(ProcessWorld, RanksThatDoNotArriveAreNamed) {
  Processes processes({.mode = "join", .size = 4, .join_ms = 1'500});
  processes.start(2, 4, "0123456789abcdef", 60'000);
  // Rank 0 waits no longer than its limit: rank 2 knocks before.
  pollfd knock{processes.listener().get(), POLLIN, 0};
  ASSERT_EQ(::poll(&knock, 1, 60'000), 1);
  processes.start(0);
  const std::vector<Ended> all = processes.wait();
  for (const Ended& ended : all) {
    EXPECT_EQ(ended.exit_code, 6) << ended.output;
    EXPECT_THAT(ended.output, HasSubstr("ranks 1 3 did not arrive in time; got after 1.50 s only rank 0 (pid "));
  }
}

// A frame of a blocking conversation; nothing when the other end says no more.
std::optional<cpu_sim::Frame> next_frame(const cpu_sim::Socket& socket) {
  cpu_sim::FrameReader reader(1 << 20);
  for (int i = 0; i < 30'000; ++i) {
    if (std::optional<cpu_sim::Frame> frame = reader.next()) return frame;
    std::string bytes;
    const long got = cpu_sim::receive_some(socket, bytes);
    if (got == 0) return std::nullopt;
    if (got < 0) ::usleep(2'000);
    if (got > 0) reader.feed(bytes);
  }
  return std::nullopt;
}

// Rank 0 may have let it in already, and would take its leaving for its end.
TEST(ProcessWorld, WhoHasSaidWhoItIsWaitsForTheAnswer) {
  Processes processes({.mode = "join", .size = 2});
  processes.start(1);
  cpu_sim::Socket visitor;
  ASSERT_TRUE(eventually([&] { return (visitor = cpu_sim::accept_one(processes.listener())).is_open(); }));
  cpu_sim::send_some(
      visitor, cpu_sim::frame_bytes(cpu_sim::FrameType::kChallenge, Packer().text(cpu_sim::new_nonce()).bytes()), 0);
  ASSERT_TRUE(next_frame(visitor));
  std::this_thread::sleep_for(milliseconds(3'000));
  std::string bytes;
  EXPECT_LT(cpu_sim::receive_some(visitor, bytes), 0) << "it has left";
  EXPECT_FALSE(cpu_sim::accept_one(processes.listener()).is_open()) << "it tries again";
}

TEST(ProcessWorld, WithoutRankZeroTheOthersGiveUp) {
  Processes processes({.mode = "join", .size = 2, .join_ms = 700});
  processes.start(1);
  const Ended ended = processes.wait()[0];
  EXPECT_EQ(ended.exit_code, 6) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("rank 0 did not arrive in time"));
}

TEST(ProcessWorld, WhoDoesNotBelongIsRefusedAndTheOthersStart) {
  Processes processes({.mode = "join", .size = 2});
  processes.start(0);
  processes.start(1, 2, "another token, of another run");
  processes.start(1, 3, "0123456789abcdef");
  processes.wait_until(1);
  processes.start(1);
  const std::vector<Ended> all = processes.wait();
  EXPECT_EQ(all[0].exit_code, 0) << all[0].output;
  EXPECT_EQ(all[3].exit_code, 0) << all[3].output;
  EXPECT_EQ(all[1].exit_code, 2);
  EXPECT_THAT(all[1].output, HasSubstr("the run's token is not the one of rank 0"));
  EXPECT_EQ(all[2].exit_code, 2);
  EXPECT_THAT(all[2].output, HasSubstr("the world sizes differ; got 3 on this rank; want 2, as on rank 0"));
}

TEST(ProcessWorld, ASecondProcessOfARankIsRefused) {
  Processes processes({.mode = "join", .size = 3});
  processes.start(0);
  processes.start(1);
  processes.start(1);
  processes.wait_until(2);  // the one of the two that came later
  processes.start(2);
  std::vector<Ended> all = processes.wait();
  if (all[1].exit_code != 0) std::swap(all[1], all[2]);
  EXPECT_EQ(all[0].exit_code, 0) << all[0].output;
  EXPECT_EQ(all[1].exit_code, 0) << all[1].output;
  EXPECT_EQ(all[2].exit_code, 2);
  EXPECT_THAT(all[2].output, ContainsRegex("rank 1 is there already; got a second process \\(pid [0-9]+\\) of rank 1"));
  EXPECT_EQ(all[3].exit_code, 0) << all[3].output;
}

constexpr unsigned kNobody = 65534;

// What rank 0 answers to one who knows all that a rank of a world of two without a token knows.
std::string answer_to_rank_one(const std::optional<cpu_sim::Socket>& socket) {
  if (!socket) return "nobody listens";
  const auto challenge = next_frame(*socket);
  if (!challenge) return "no challenge";
  cpu_sim::Hello hello{.rank = 1, .world_size = 2, .run_id = {}, .nonce = {}, .proof = {}};
  const std::string answer = cpu_sim::answer_challenge("", Unpacker(challenge->payload).text(), hello);
  cpu_sim::send_some(*socket, cpu_sim::frame_bytes(cpu_sim::FrameType::kHello, answer), 0);
  const auto frame = next_frame(*socket);
  if (!frame) return "no answer";
  if (frame->type != cpu_sim::FrameType::kRefused) return "let in";
  Unpacker in(frame->payload);
  return cpu_sim::unpack_error(in).what();
}

// In a process of another user, which ends with what `body` returns.
int as_nobody(const std::function<int()>& body) {
  const int pid = ::fork();
  if (pid == 0) ::_exit(::setgid(kNobody) == 0 && ::setuid(kNobody) == 0 ? body() : 99);
  return pid;
}

int code_of(int pid) {
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WEXITSTATUS(status);
}

TEST(ProcessWorldWithoutToken, RanksOfOneUserMeet) {
  for (const Ended& rank : run({.mode = "join", .size = 3, .token = ""})) EXPECT_EQ(rank.exit_code, 0) << rank.output;
}

TEST(ProcessWorldWithoutToken, WhoDoesNotShowItsUserIsRefused) {
  Processes processes({.mode = "join", .size = 2, .token = ""});
  processes.start(0);
  const auto stranger = cpu_sim::connect_to("127.0.0.1", processes.port(), milliseconds(5'000));
  EXPECT_THAT(answer_to_rank_one(stranger),
              HasSubstr("got a TCP connection, which does not reveal the user; want user"));
  processes.start(1, 2, "a token, which rank 0 has not");
  processes.wait_until(1);
  processes.start(1);
  const std::vector<Ended> all = processes.wait();
  EXPECT_EQ(all[0].exit_code, 0) << all[0].output;
  EXPECT_THAT(all[1].output, HasSubstr("the run's token is not the one of rank 0"));
  EXPECT_EQ(all[2].exit_code, 0) << all[2].output;
}

TEST(ProcessWorldWithoutToken, ARankZeroWithATokenSaysSo) {
  Processes processes({.mode = "join", .size = 2});
  processes.start(0);
  processes.start(1, 2, "");
  processes.wait_until(1);
  processes.start(1);
  const std::vector<Ended> all = processes.wait();
  EXPECT_EQ(all[0].exit_code, 0) << all[0].output;
  EXPECT_EQ(all[1].exit_code, 2);
  EXPECT_THAT(all[1].output, HasSubstr("the run's token is not the one of rank 0"));
}

// Whoever took rank 0's port knows as much as a rank that has no token.
TEST(ProcessWorldWithoutToken, AWelcomeOverTcpIsNotBelieved) {
  Processes processes({.mode = "join", .size = 2, .join_ms = 4'000, .token = ""});
  processes.start(1);
  int welcomed = 0;
  std::atomic<bool> gone = false;
  std::thread false_rank_zero([&] {
    for (; !gone && welcomed < 2; ::usleep(2'000)) {
      const cpu_sim::Socket visitor = cpu_sim::accept_one(processes.listener());
      if (!visitor.is_open()) continue;
      const std::string nonce = cpu_sim::new_nonce();
      cpu_sim::send_some(visitor, cpu_sim::frame_bytes(cpu_sim::FrameType::kChallenge, Packer().text(nonce).bytes()),
                         0);
      const auto frame = next_frame(visitor);
      if (!frame) continue;
      Unpacker in(frame->payload);
      const std::string proof = cpu_sim::coordinator_proof("", nonce, cpu_sim::unpack_hello(in).nonce);
      cpu_sim::send_some(visitor, cpu_sim::frame_bytes(cpu_sim::FrameType::kWelcome, Packer().text(proof).bytes()), 0);
      cpu_sim::send_some(visitor, cpu_sim::frame_bytes(cpu_sim::FrameType::kStart), 0);
      ++welcomed;
      ::usleep(100'000);
    }
  });
  const Ended ended = processes.wait()[0];
  gone = true;
  false_rank_zero.join();
  EXPECT_EQ(welcomed, 2) << "it comes again";
  EXPECT_EQ(ended.exit_code, 6) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("rank 0 did not arrive in time"));
}

TEST(ProcessWorldWithoutToken, AnotherUserCannotJoin) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may become another user";
  Processes processes({.mode = "join", .size = 2, .token = ""});
  processes.start(0);
  const int other = as_nobody([&] {
    std::optional<cpu_sim::Socket> socket;
    const std::string name = std::string(1, '\0') + "ranklab-rendezvous-127.0.0.1:" + std::to_string(processes.port());
    for (int i = 0; i < 12'000 && !socket; ++i, ::usleep(5'000))
      socket = cpu_sim::connect_to_unix(name, milliseconds(1'000));
    const std::string answer = answer_to_rank_one(socket);
    std::fprintf(stderr, "%s\n", answer.c_str());
    return answer.find("one user; got user 65534; want user 0") == std::string::npos ? 1 : 0;
  });
  EXPECT_EQ(code_of(other), 0);
  processes.start(1);
  for (const Ended& ended : processes.wait()) EXPECT_EQ(ended.exit_code, 0) << ended.output;
}

TEST(ProcessWorldWithoutToken, AnotherUserCannotPlayRankZero) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may become another user";
  Processes processes({.mode = "join", .size = 2, .token = ""});
  int said[2];
  ASSERT_EQ(::pipe(said), 0);
  const int other = as_nobody([&] {
    const cpu_sim::Socket listener = cpu_sim::listen_for_own_user("127.0.0.1", processes.port());
    (void)!::write(said[1], "x", 1);
    std::vector<cpu_sim::Socket> visitors;
    for (int i = 0; i < 24'000; ++i, ::usleep(5'000)) {
      cpu_sim::Socket visitor = cpu_sim::accept_one(listener);
      if (visitor.is_open()) visitors.push_back(std::move(visitor));
      for (const cpu_sim::Socket& one : visitors)  // a rank would say who it is
        if (std::string bytes; cpu_sim::receive_some(one, bytes) > 0) return 1;
    }
    return 0;
  });
  char there = 0;
  ASSERT_EQ(::read(said[0], &there, 1), 1);
  processes.start(0);
  processes.start(1);
  const std::vector<Ended> all = processes.wait();
  EXPECT_EQ(all[0].exit_code, 3);
  EXPECT_THAT(all[0].output, HasSubstr("another process listens where ranks without a token meet"));
  EXPECT_EQ(all[1].exit_code, 3);
  EXPECT_THAT(all[1].output, HasSubstr("a process of another user listens where rank 0 should; got user 65534"));
  int status = 0;
  EXPECT_EQ(::waitpid(other, &status, WNOHANG), 0) << "it received something";
  ::kill(other, SIGKILL);
  ::waitpid(other, &status, 0);
}

// Idle connections, random bytes, a length of 2^40, the right magic with nonsense: ranks join all the same.
TEST(ProcessWorld, HostileConnectionsDoNotHoldUpTheStart) {
  Processes processes({.mode = "join", .size = 3});
  processes.start(0);
  std::vector<cpu_sim::Socket> strangers;
  std::string huge = cpu_sim::frame_bytes(cpu_sim::FrameType::kHello);
  huge[13] = 1;  // the length's sixth byte: 2^40
  const std::vector<std::string> openings = {"",
                                             "GET / HTTP/1.1\r\n\r\n",
                                             std::string(3, '\xff'),
                                             huge,
                                             cpu_sim::frame_bytes(cpu_sim::FrameType::kPost, std::string(100, 'x')),
                                             cpu_sim::frame_bytes(cpu_sim::FrameType::kHello, std::string(64, '\x7f'))};
  for (int i = 0; i < 600; ++i) {
    auto stranger = cpu_sim::connect_to("127.0.0.1", processes.port(), milliseconds(5'000));
    if (!stranger) continue;
    const std::string& opening = openings[static_cast<size_t>(i) % openings.size()];
    cpu_sim::send_some(*stranger, opening, 0);
    strangers.push_back(std::move(*stranger));
  }
  EXPECT_GT(strangers.size(), 300u);
  processes.start_clock();
  processes.start(1);
  processes.start(2);
  for (const Ended& ended : processes.wait()) {
    EXPECT_EQ(ended.exit_code, 0) << ended.output;
    EXPECT_LT(ended.seconds, 10);
  }
}

}  // namespace
}  // namespace ranklab::cpu_sim_test
