// One rank of a process world, started by process_world_test.cpp with torchrun's environment: runs what argv names and
// ends with the error's exit code. argv: MODE LISTENER_FD JOIN_MS HANG_MS TOKEN.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include "backends/cpu_sim/processes/process_world.h"
#include "tests/conformance/conformance.h"
#include "tests/cpu_sim/faults.h"

namespace ranklab::cpu_sim_test {
namespace {

using std::chrono::milliseconds;

// Far longer than the test lets a process run.
constexpr std::chrono::hours kForGood{1};

// Every make_world() of the suite gives the one world of this process; it has one run after another.
class SharedWorld final : public World {
 public:
  explicit SharedWorld(std::shared_ptr<World> world) : world_(std::move(world)) {}
  int size() const override { return world_->size(); }
  int local_ranks() const override { return world_->local_ranks(); }
  Capabilities capabilities() const override { return world_->capabilities(); }
  std::string describe() const override { return world_->describe(); }
  void run(const std::function<void(Endpoint&)>& body) override { world_->run(body); }

 private:
  std::shared_ptr<World> world_;
};

int run_conformance(std::shared_ptr<World> world) {
  conformance::register_suite({.name = "processes",
                               .make_world = [world](int) { return std::make_unique<SharedWorld>(world); },
                               .sizes = {world->size()},
                               .counts = {0, 1, 7, 4097},
                               .dtypes = {at::kFloat, at::kBFloat16, at::kLong},
                               .delay_runs = 10});
  return RUN_ALL_TESTS();
}

void signal_ready(int rank) {
  if (rank != 0) return;
  std::printf("ready\n");
  std::fflush(stdout);
}

void misbehave(const std::string& mode, Endpoint& endpoint, Communicator& comm) {
  const int rank = comm.rank();
  const at::Tensor x = at::ones({4});
  if (mode == "mismatch") {
    comm.barrier();
    if (rank % 2 == 0) comm.all_reduce(x);
    if (rank % 2 == 1) comm.broadcast(x, 0);
  } else if (mode == "message_mismatch") {
    if (rank == 0) comm.send(x, 1, 7);
    if (rank == 1) comm.recv(at::zeros({5}), 0, 7);
  } else if (mode == "deadlock") {
    comm.recv(x, (rank + 1) % comm.size());
  } else if (mode == "missing_call") {
    if (rank != 1) comm.all_gather(x);
  } else if (mode == "dropped") {
    // Never waited for, and never made by rank 1.
    if (rank == 0) comm.send_async(x, 1);
  } else if (mode == "throw") {
    if (rank == 2) throw Error(ErrorKind::kNumeric, {.where = "loss", .what = "not finite", .got = "nan"});
    comm.all_reduce(x);
  } else if (mode == "hang") {
    comm.all_gather(x);
    if (rank == 1) std::this_thread::sleep_for(kForGood);
    comm.all_reduce(x);
  } else if (mode == "busy") {
    // Calls and computing, for ever: whatever the victim is doing when it dies.
    for (int step = 0;; ++step) {
      comm.all_reduce(at::ones({1000}));
      if (step == 3) signal_ready(rank);
      const WorkPtr pending = comm.all_gather_async(x);
      if (rank == 0) comm.send(x, comm.size() - 1);
      if (rank == comm.size() - 1) comm.recv(at::zeros({4}), 0);  // the all_gather still reads x
      pending->wait();
    }
  } else if (mode == "computing") {
    comm.barrier();
    signal_ready(rank);
    std::this_thread::sleep_for(kForGood);  // no call that could tell it anything
  } else if (mode == "pause") {
    comm.barrier();
    signal_ready(rank);
    // In pieces: a sleep goes on while the process is stopped.
    for (int i = 0; rank == 1 && i < 100; ++i) std::this_thread::sleep_for(milliseconds(10));
    comm.all_reduce(x);
  } else if (mode == "join") {
    comm.barrier();
  } else {
    throw Error(ErrorKind::kInvalidArgument, {.where = "test", .what = "no mode " + mode});
  }
  (void)endpoint;
}

int run(const std::string& mode, const ProcessWorldOptions& options) {
  const std::shared_ptr<World> world = make_process_world(options);
  try {
    if (mode == "conformance") return run_conformance(world);
    world->run([&](Endpoint& endpoint) { misbehave(mode, endpoint, *endpoint.communicator(everyone(endpoint))); });
    return 0;
  } catch (const Error& error) {
    std::printf("%s: %s\n", world->error_is_shown_elsewhere() ? "elsewhere" : "error", error.what());
    return exit_code(error.kind());
  }
}

}  // namespace
}  // namespace ranklab::cpu_sim_test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc < 6) return 2;
  using std::chrono::milliseconds;
  ranklab::ProcessWorldOptions options{.env = ranklab::read_process_env(),
                                       .token = argv[5],
                                       .join_timeout = milliseconds(std::atoi(argv[3])),
                                       .hang_timeout = milliseconds(std::atoi(argv[4]))};
  if (options.env.rank == 0) options.listener_fd = std::atoi(argv[2]);
  return ranklab::cpu_sim_test::run(argv[1], options);
}
