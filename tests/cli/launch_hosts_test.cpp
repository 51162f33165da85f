// Ranks started by others than `ranklab launch` (mpirun, torchrun), and by it on two hosts, which are two network
// namespaces here: the same losses as threads, bit for bit.
#include "tests/cli/launch_fixture.h"

namespace ranklab {
namespace {

class LaunchHosts : public Launch {};

TEST_F(LaunchHosts, UnderMpirun) {
  if (run_both("command -v mpirun").exit_code != 0) GTEST_SKIP() << "no mpirun (apt-get install openmpi-bin)";
  ASSERT_EQ(ranklab("train --world-size 4 " + kShort + log("threads")).exit_code, 0);
  const Outcome run =
      run_both("OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n 4 " +
               std::string(RANKLAB_BINARY) + " train " + kShort + log("mpi"));
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_EQ(curve("threads"), curve("mpi"));
}

TEST_F(LaunchHosts, UnderTorchrun) {
  const char* given = std::getenv("RANKLAB_TORCHRUN");
  const std::string torchrun = given != nullptr ? given : "torchrun";
  if (run_both("command -v " + torchrun).exit_code != 0) GTEST_SKIP() << "no torchrun in PATH, nor RANKLAB_TORCHRUN";
  ASSERT_EQ(ranklab("train --world-size 2 " + kShort + log("threads")).exit_code, 0);
  const Outcome run = run_both(torchrun + " --standalone --no-python --nproc-per-node 2 " +
                               std::string(RANKLAB_BINARY) + " train " + kShort + log("torchrun"));
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_EQ(curve("threads"), curve("torchrun"));
}

// Two hosts: network namespaces with a cable between them.
TEST_F(LaunchHosts, OnTwoHosts) {
  const std::string a = "rla" + std::to_string(::getpid()), b = "rlb" + std::to_string(::getpid());
  const std::string setup = "ip netns add " + a + " && ip netns add " + b + " && ip link add " + a + "v netns " + a +
                            " type veth peer name " + b + "v netns " + b + " && ip -n " + a +
                            " link set lo up && ip -n " + b + " link set lo up && ip -n " + a +
                            " addr add 10.77.0.1/24 dev " + a + "v && ip -n " + b + " addr add 10.77.0.2/24 dev " + b +
                            "v && ip -n " + a + " link set " + a + "v up && ip -n " + b + " link set " + b + "v up";
  const auto clean_up = [&] { run_both("ip netns del " + a + "; ip netns del " + b); };
  if (const Outcome made = run_both(setup); made.exit_code != 0) {
    clean_up();
    GTEST_SKIP() << "no network namespaces here (they need root and iproute2): " << made.output;
  }
  std::ofstream(folder("token")) << "0123456789abcdef0123456789abcdef\n";
  const auto on = [&](const std::string& host, int node, const std::string& more) {
    return "ip netns exec " + host + " " + RANKLAB_BINARY + " launch --nnodes 2 --nproc-per-node 2 --node-rank " +
           std::to_string(node) + " --master-addr 10.77.0.1 --rdzv-token-file " + folder("token") + " --tp 2 " + more;
  };
  const pid_t second = start("second", on(b, 1, kShort + log("elsewhere")));
  const Outcome first = run_both(on(a, 0, kShort + log("hosts")));
  EXPECT_EQ(exit_code_of(second), 0) << text("second.txt");
  ASSERT_EQ(first.exit_code, 0) << first.output;
  EXPECT_THAT(first.output, HasSubstr("4 rank processes on several hosts"));
  EXPECT_EQ(ranklab("train --world-size 4 --tp 2 " + kShort + log("threads")).exit_code, 0);
  EXPECT_EQ(curve("threads"), curve("hosts"));
  expect_sound("hosts", 4);
  EXPECT_FALSE(fs::exists(folder("elsewhere"))) << "rank 0 writes the files";
  // A cable that is pulled: both ends notice, and name who is silent.
  const pid_t far = start("far", on(b, 1, kEndless + log("elsewhere")));
  const pid_t near = start("near", on(a, 0, kEndless + log("cable")));
  EXPECT_TRUE(wait_for_steps("cable", 60)) << text("near.txt");
  run_both("ip -n " + a + " link set " + a + "v down");
  const FairClock clock;
  EXPECT_EQ(exit_code_of(near), 6) << text("near.txt");
  EXPECT_EQ(exit_code_of(far), 6) << text("far.txt");
  EXPECT_LT(clock.seconds(), 4.0);
  EXPECT_THAT(text("near.txt"), HasSubstr("the rank's process does not answer"));
  EXPECT_THAT(text("far.txt"), HasSubstr("[rank 0] the rank's process, which coordinates the others, does not answer"));
  clean_up();
}

}  // namespace
}  // namespace ranklab
