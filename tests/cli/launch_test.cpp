// `ranklab launch` as a user meets it: ranks as processes give the same losses as threads, bit for bit, and when a rank
// dies or the user interrupts, everything ends soon, with a message naming the rank and the cause.
#include <sys/file.h>

#include <random>
#include <tuple>

#include "core/trace/find_trace.h"
#include "tests/cli/launch_fixture.h"
#include "tests/free_port.h"

namespace ranklab {
namespace {

TEST_F(Launch, ProcessesGiveTheLossesOfThreadsBitForBit) {
  const std::pair<const char*, const char*> layouts[] = {{"dp4", "--tp 1"}, {"dp2_tp2", "--tp 2"}};
  for (const auto& [name, flags] : layouts) {
    const std::string threads = std::string(name) + "_threads", processes = std::string(name) + "_processes";
    ASSERT_EQ(ranklab("train --world-size 4 " + kShort + flags + log(threads)).exit_code, 0);
    const Outcome run = ranklab("launch --nproc-per-node 4 " + kShort + flags + log(processes));
    ASSERT_EQ(run.exit_code, 0) << run.output;
    EXPECT_THAT(run.output, HasSubstr("world    4 rank processes, Gloo over unix sockets"));
    EXPECT_THAT(run.output, Not(HasSubstr("[rank "))) << "only rank 0 prints";
    ASSERT_EQ(curve(threads).size(), 4u) << "three steps, a validation";
    EXPECT_EQ(curve(threads), curve(processes)) << name;
    EXPECT_EQ(text(threads + "/log.txt"), text(processes + "/log.txt")) << "validation too";
    expect_sound(processes, 4);
  }
}

TEST_F(Launch, AnyProgramGetsTorchrunsEnvironment) {
  const Outcome run = ranklab(
      "launch --nproc_per_node 2 --rdzv_id job7 --max-restarts 0 -- sh -c "
      "'echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $GROUP_RANK $ROLE_RANK/$ROLE_WORLD_SIZE $MASTER_ADDR "
      "$TORCHELASTIC_RUN_ID $TORCHELASTIC_RESTART_COUNT/$TORCHELASTIC_MAX_RESTARTS $OMP_NUM_THREADS'");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.output, HasSubstr("0/2 0/2 0 0/2 127.0.0.1 job7 0/0 1\n"));
  EXPECT_THAT(run.output, HasSubstr("[rank 1] 1/2 1/2 0 1/2 127.0.0.1 job7 0/0 1\n"));
  EXPECT_EQ(ranklab("launch --nproc-per-node 1 -- test '' = ''").exit_code, 0) << "with empty arguments, too";
}

TEST_F(Launch, TheFirstFailureIsShownOnceAndIsTheExitCode) {
  const Outcome run = ranklab("launch --nproc-per-node 3 -- sh -c 'test $RANK = 1 && exit 7; sleep 20'");
  EXPECT_EQ(run.exit_code, 7);
  EXPECT_THAT(run.output, testing::ContainsRegex("rank 1 \\(pid [0-9]+\\) ended with exit code 7"));
  const Outcome again = ranklab(
      "launch --nproc-per-node 2 --max-restarts 2 -- sh -c "
      "'echo try $TORCHELASTIC_RESTART_COUNT; test $TORCHELASTIC_RESTART_COUNT = 1 || exit 3'");
  EXPECT_EQ(again.exit_code, 0) << again.output;
  EXPECT_THAT(again.output, HasSubstr("restarting all ranks (1 of 2)"));
  const Outcome nan = ranklab("launch --nproc-per-node 2 --tp 1 --lr 1e30 --clip-grad 0 " + kShort + log("nan"));
  EXPECT_EQ(nan.exit_code, 7) << nan.output;
  const size_t first = nan.output.find("training diverged");
  ASSERT_NE(first, std::string::npos) << nan.output;
  EXPECT_EQ(nan.output.find("training diverged", first + 1), std::string::npos) << nan.output;
  EXPECT_THAT(ranklab("trace stats " + folder("nan")).output,
              AllOf(HasSubstr("2 ranks"), HasSubstr("the run failed in step")));
  EXPECT_EQ(run_both("zcat " + folder("nan") + "/trace.json.gz | grep -c '\"name\":\"failed\"'").output, "2\n")
      << "both processes leave the step that broke off";
}

// Only rank 0 knows the error; rank 1, which loses its connection, may be reaped first (in one of six launches, before
// this was handled).
TEST_F(Launch, TheRankThatKnowsWhatIsWrongIsNamed) {
  fs::create_directories(folder("busy"));
  const int lock = ::open((folder("busy") + "/log.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  ASSERT_EQ(::flock(lock, LOCK_EX | LOCK_NB), 0);
  for (int i = 0; i < 12; ++i) {
    const Outcome busy = ranklab("launch --nproc-per-node 2 --tp 1 " + kShort + log("busy"));
    EXPECT_EQ(busy.exit_code, 2) << busy.output;
    EXPECT_THAT(busy.output, AllOf(HasSubstr("another run logs into"), Not(HasSubstr("is gone"))));
    EXPECT_THAT(busy.output, testing::ContainsRegex("rank 0 \\(pid [0-9]+\\) ended with exit code 2"));
  }
  ::close(lock);
}

TEST_F(Launch, AnErrorOfRankZeroAloneIsTheOnlyOne) {
  std::ofstream(folder("file")) << "no folder";
  // Rank 0 measures matrix products before it opens the folder, so that the others are there when it fails.
  const Outcome run = ranklab(
      "launch --nproc-per-node 2 --tp 1 --num-layers 2 --hidden-size 32 --num-attention-heads 4 --seq-length 32 "
      "--gbs 8 --mock-data --train-iters 3" +
      log("file"));
  EXPECT_EQ(run.exit_code, 1) << run.output;
  const size_t first = run.output.find("error:");
  EXPECT_THAT(run.output, HasSubstr(folder("file")));
  EXPECT_EQ(run.output.find("error:", first + 1), std::string::npos) << run.output;
}

TEST_F(Launch, WhatIsRefusedIsNotStartedAgain) {
  fs::create_directories(folder("held"));
  const int lock = ::open((folder("held") + "/log.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  ASSERT_EQ(::flock(lock, LOCK_EX | LOCK_NB), 0);
  const Outcome held = ranklab("launch --nproc-per-node 2 --tp 1 --max-restarts 2 " + kShort + log("held"));
  EXPECT_EQ(held.exit_code, 2) << held.output;
  EXPECT_THAT(held.output, AllOf(HasSubstr("another run logs into"), Not(HasSubstr("restarting all ranks"))));
  ::close(lock);
}

// Not only for as long as ranklab's own ranks need.
TEST_F(Launch, AnyProgramMaySaveItsWorkBeforeItEnds) {
  const std::string rank_0 = "trap 'sleep 2; echo saved >" + folder("work") + "; exit 0' TERM INT; : >" +
                             folder("ready") + "; while :; do sleep 0.1; done";
  const std::string program = " launch --nproc-per-node 2 -- sh -c \"test \\$RANK = 1 || { " + rank_0 +
                              "; }; until test -f " + folder("ready") + "; do sleep 0.05; done; ";
  const Outcome failed = ranklab(program + "exit 7\"");
  EXPECT_EQ(failed.exit_code, 7) << failed.output;
  EXPECT_EQ(text("work"), "saved\n") << failed.output;
  fs::remove(folder("work"));
  fs::remove(folder("ready"));
  const pid_t stopped = start("stopped", std::string(RANKLAB_BINARY) + program + "sleep 100\"");
  EXPECT_TRUE(eventually([&] { return fs::exists(folder("ready")); }));
  ::kill(stopped, SIGINT);
  ::waitpid(stopped, nullptr, 0);
  EXPECT_EQ(text("work"), "saved\n") << text("stopped.txt");
}

TEST_F(Launch, TeeAndFilter) {
  const Outcome run = ranklab("launch --nproc-per-node 2 --tee 3 --local-ranks-filter 1" + log("tee") +
                              "-- sh -c 'echo out $RANK; echo err $RANK >&2'");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("[rank 1] out 1"));
  EXPECT_THAT(run.output, Not(HasSubstr("out 0")));
  EXPECT_EQ(text("tee/ranks/rank_0.out"), "out 0\n");
  EXPECT_EQ(text("tee/ranks/rank_1.err"), "err 1\n");
}

// A file that may not grow, as on a full disk: reported once per file, with a nonzero exit code; the terminal still
// shows everything.
TEST_F(Launch, ACopyThatIsLostIsNoSuccess) {
  const Outcome run = run_both("ulimit -f 8; " + std::string(RANKLAB_BINARY) +
                               " launch --nproc-per-node 2 --tee 1 --local-ranks-filter 0" + log("lost_tee") +
                               "-- sh -c 'yes hello | head -n 20000; echo last $RANK'");
  EXPECT_EQ(run.exit_code, 9) << run.output.substr(0, 2000);
  EXPECT_THAT(run.output, HasSubstr("last 0"));
  for (const char* rank : {"0", "1"}) {
    const std::string said = std::string("[--tee] cannot write all that rank ") + rank + " prints; got '" +
                             folder("lost_tee") + "/ranks/rank_" + rank + ".out': File too large";
    const size_t at = run.output.find(said);
    ASSERT_NE(at, std::string::npos) << said;
    EXPECT_EQ(run.output.find(said, at + 1), std::string::npos) << said;
  }
}

TEST_F(Launch, MistakesAreOneUsageErrorBeforeAnyProcessStarts) {
  const std::pair<const char*, const char*> mistakes[] = {
      {"--nproc-per-node 0", "--nproc-per-node"},
      {"--nproc-per-node two", "'two'"},
      {"--nproc-per-node 2 --world-size 8", "world size of 8"},
      {"--nproc-per-node 4 --tp 3", "--tp 3"},
      {"--nnodes 2 --nproc-per-node 1 --tp 1", "--node-rank"},
      {"--nnodes 2 --node-rank 2 --nproc-per-node 1 --tp 1", "0 to 1"},
      {"--nnodes 2 --node-rank 0 --nproc-per-node 1 --tp 1", "--master-addr"},
      {"--nnodes 2 --node-rank 0 --nproc-per-node 1 --tp 1 --master-addr 192.0.2.1", "token"},
      {"--nnodes 1:4", "'1:4'"},
      {"--nnodes 2 --standalone --nproc-per-node 1 --tp 1", "--standalone"},
      {"--rdzv-backend etcd", "'etcd'"},
      {"--max-restarts -1", "--max-restarts"},
      {"--tee 4", "--tee"},
      {"--nproc-per-nod 2", "did you mean '--nproc-per-node'?"},
      {"trian", "no such program"},
      {"--nproc-per-node 2 --preset deepseek_v3_tiny --ep 2 --moe-token-dispatcher-type rdep",
       "host memory shared by the ranks"},
  };
  for (const auto& [arguments, part] : mistakes) {
    const Outcome run = ranklab(std::string("launch ") + arguments + log("mistake"));
    EXPECT_EQ(run.exit_code, 2) << arguments << ": " << run.output;
    EXPECT_THAT(run.output, HasSubstr(part)) << arguments;
    EXPECT_EQ(std::count(run.output.begin(), run.output.end(), '\n'), 1) << run.output;
  }
  const Outcome token = ranklab("launch --rdzv-token-file /no/such/file" + log("mistake"));
  EXPECT_EQ(token.exit_code, 1) << "a missing input: " << token.output;
  EXPECT_THAT(token.output, HasSubstr("--rdzv-token-file"));
  EXPECT_EQ(run_both("RANK=1 OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 WORLD_SIZE=2 " +
                     std::string(RANKLAB_BINARY) + " train " + kShort)
                .exit_code,
            2);
  const Outcome half = run_both("RANK=1 " + std::string(RANKLAB_BINARY) + " train " + kShort);
  EXPECT_EQ(half.exit_code, 2);
  EXPECT_THAT(half.output, HasSubstr("WORLD_SIZE is missing"));
}

TEST_F(Launch, AShortTokenIsNoSecret) {
  for (const std::string& run :
       {"RANKLAB_RUN_TOKEN=short " + std::string(RANKLAB_BINARY) + " launch --nproc-per-node 2 --tp 1",
        "RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=29987 "
        "RANKLAB_RUN_TOKEN=short " +
            std::string(RANKLAB_BINARY) + " train --tp 1"}) {
    const Outcome short_one = run_both(run + " " + kShort + log("short"));
    EXPECT_EQ(short_one.exit_code, 2) << short_one.output;
    EXPECT_THAT(short_one.output,
                HasSubstr("[RANKLAB_RUN_TOKEN] the token is too short to be a secret; got 5 characters; "
                          "want 16 or more; do: make one with: openssl rand -hex 32"));
  }
  std::ofstream(folder("token")) << "abcde\n";
  const Outcome file = ranklab("launch --rdzv-token-file " + folder("token") + " --nproc-per-node 2 --tp 1 " + kShort);
  EXPECT_EQ(file.exit_code, 2) << file.output;
  EXPECT_THAT(file.output, HasSubstr("[--rdzv-token-file] the token is too short"));
}

// Before the ranks have connected, nobody else can report it.
TEST_F(Launch, AStoppedRankIsNamedAtOnce) {
  const FairClock clock;
  const pid_t launcher =
      start("stopped", std::string(RANKLAB_BINARY) +
                           " launch --nproc-per-node 2 -- sh -c 'test $RANK = 0 || kill -STOP $$; exec sleep 1000'");
  EXPECT_TRUE(eventually([&] { return text("stopped.txt").find("do: kill -CONT ") != std::string::npos; }));
  EXPECT_LT(clock.seconds(), 3.0);
  ::kill(launcher, SIGINT);
  exit_code_of(launcher);
  EXPECT_LT(clock.seconds(), 15.0) << "its end does not wait for the stopped one";
  EXPECT_THAT(text("stopped.txt"), HasSubstr("ranklab launch: rank 1 (pid "));
  EXPECT_THAT(text("stopped.txt"), HasSubstr("is stopped by signal 19"));
}

TEST_F(Launch, WhoHasNotJoinedIsSaidWhileTheyAreWaitedFor) {
  const Outcome alone = run_both(
      "RANK=0 WORLD_SIZE=3 LOCAL_RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=" + std::to_string(free_port()) + " " +
      RANKLAB_BINARY + " train --tp 1 --gbs 9 --rendezvous-timeout 6 --num-layers 1 --mock-data" + log("alone"));
  EXPECT_EQ(alone.exit_code, 6) << alone.output;
  EXPECT_THAT(alone.output, HasSubstr("[rendezvous] waits for ranks 1 2: 1 of 3 ranks are here after 3"));
  EXPECT_THAT(alone.output, HasSubstr("ranks 1 2 did not arrive in time"));
}

// Its training is done, so there is nothing to repeat.
TEST_F(Launch, ALostOutputIsNotTrainedForAgain) {
  fs::create_directories(folder("lost"));
  fs::create_symlink("/dev/full", folder("lost") + "/metrics.jsonl");
  const Outcome lost = ranklab("launch --nproc-per-node 2 --tp 1 --max-restarts 2 " + kShort + log("lost"));
  EXPECT_EQ(lost.exit_code, 9) << lost.output;
  EXPECT_THAT(lost.output, HasSubstr("done after 3 steps"));
  EXPECT_THAT(lost.output, Not(HasSubstr("restarting all ranks")));
}

// A program other than training does not use that exit code.
TEST_F(Launch, AnotherProgramsNineIsAFailure) {
  const Outcome nine = ranklab("launch --nproc-per-node 2 --max-restarts 1 -- sh -c 'exit 9'");
  EXPECT_EQ(nine.exit_code, 9) << nine.output;
  EXPECT_THAT(nine.output, HasSubstr("restarting all ranks (1 of 1)"));
}

void expect_nobody_left(const std::function<std::vector<pid_t>()>& ranks) {
  EXPECT_TRUE(eventually([&] { return ranks().empty(); })) << "an orphan";
}

TEST_F(Launch, AKilledRankEndsAllWithinASecondAndIsNamed) {
  for (const auto& [victim, signal, limit_s, code] :
       {std::tuple{2, SIGKILL, 1.0, 5}, std::tuple{0, SIGKILL, 1.0, 5}, std::tuple{1, SIGSTOP, 3.0, 6}}) {
    const std::string name = "kill" + std::to_string(victim);
    const pid_t launcher =
        start(name, std::string(RANKLAB_BINARY) + " launch --nproc-per-node 4 --tp 1 " + kEndless + log(name));
    ASSERT_TRUE(wait_for_steps(name, 60)) << text(name + ".txt");
    const std::vector<pid_t> ranks = ranks_of(name);
    ASSERT_EQ(ranks.size(), 4u);
    const FairClock clock;
    ::kill(ranks[static_cast<size_t>(victim)], signal);
    EXPECT_EQ(exit_code_of(launcher), code) << text(name + ".txt");
    EXPECT_LT(clock.seconds(), limit_s) << name;
    const std::string output = text(name + ".txt");
    const std::string rank = "rank " + std::to_string(victim);
    EXPECT_THAT(output, HasSubstr("[" + rank + "] the rank's process"));
    if (signal == SIGKILL) {
      const std::string pid = std::to_string(ranks[static_cast<size_t>(victim)]);
      EXPECT_THAT(output, HasSubstr(rank + " (pid " + pid + ") was killed by signal 9"));
    }
    expect_nobody_left([&] { return ranks_of(name); });
  }
}

// Before it catches signals, too: its death is no crash, after which --max-restarts would start all again.
TEST_F(Launch, ASignalToARankThatStartsEndsAll) {
  for (const auto& [victim, signal, code] :
       {std::tuple{1, SIGTERM, 143}, std::tuple{0, SIGINT, 130}, std::tuple{1, SIGHUP, 143}}) {
    const std::string name = "early" + std::to_string(signal);
    const pid_t launcher = start(
        name, std::string(RANKLAB_BINARY) + " launch --nproc-per-node 2 --max-restarts 1 " + kEndless + log(name));
    std::vector<pid_t> ranks;
    ASSERT_TRUE(eventually([&] { return (ranks = ranks_of(name)).size() == 2; })) << text(name + ".txt");
    ::kill(ranks[static_cast<size_t>(victim)], signal);
    EXPECT_EQ(exit_code_of(launcher), code) << text(name + ".txt");
    EXPECT_THAT(text(name + ".txt"), Not(HasSubstr("was killed by")));
    expect_nobody_left([&] { return ranks_of(name); });
  }
}

// What was traced long before is rank 0's by then, and on its disk.
TEST_F(Launch, AKilledRankCostsNoTracedStep) {
  for (const int victim : {1, 0}) {
    const std::string name = "traced" + std::to_string(victim);
    const pid_t launcher =
        start(name, std::string(RANKLAB_BINARY) + " launch --nproc-per-node 2 --tp 1 " + kEndless + log(name));
    const bool trained = eventually([&] {
      const std::string steps = text(name + "/metrics.jsonl");
      return std::count(steps.begin(), steps.end(), '\n') > 40;
    });
    ASSERT_TRUE(trained) << text(name + ".txt");
    ::kill(ranks_of(name).at(static_cast<size_t>(victim)), SIGKILL);
    EXPECT_EQ(exit_code_of(launcher), 5) << text(name + ".txt");
    const Outcome last = ranklab("trace stats --step 19 " + folder(name));
    EXPECT_EQ(last.exit_code, 0) << last.output;
    EXPECT_THAT(last.output, HasSubstr("step 19")) << victim;
  }
}

// At start-up, in steps, in validation: all gone in less than two seconds, 130, and what is on disk is whole.
TEST_F(Launch, CtrlCAtAnyMomentEndsAllInTwoSeconds) {
  std::mt19937 random(static_cast<unsigned>(::getpid()));
  for (int round = 0; round < 5; ++round) {
    const std::string name = "int" + std::to_string(round);
    const int delay_ms = round < 3 ? static_cast<int>(random() % 900) : 900 + static_cast<int>(random() % 900);
    const int signal = round % 3 == 2 ? SIGTERM : SIGINT;
    const pid_t launcher =
        start(name, std::string(RANKLAB_BINARY) + " launch --nproc-per-node 2 " + kEndless + log(name));
    std::this_thread::sleep_for(milliseconds(delay_ms));
    const FairClock clock;
    ::kill(launcher, signal);
    EXPECT_EQ(exit_code_of(launcher), 128 + signal) << delay_ms << " ms: " << text(name + ".txt");
    EXPECT_LT(clock.seconds(), 2.0) << delay_ms << " ms";
    EXPECT_THAT(text(name + ".txt"), Not(HasSubstr("error:"))) << delay_ms << " ms";
    expect_nobody_left([&] { return ranks_of(name); });
    const std::string metrics = text(name + "/metrics.jsonl");
    EXPECT_TRUE(metrics.empty() || metrics.back() == '\n') << "no half line";
    std::error_code ignored;
    if (!fs::exists(folder(name))) continue;
    // A step that takes long, as on a machine that has no time for it. The trace is then kept up to the step before,
    // but the process does not wait for long until it has its name.
    const bool abandoned = text(name + ".txt").find("is abandoned") != std::string::npos;
    for (const auto& file : fs::directory_iterator(folder(name), ignored)) {
      if (abandoned && is_unfinished_trace(file.path().string())) {
        if (file.file_size() > 0) expect_readable(name, 2);
        continue;
      }
      EXPECT_THAT(file.path().filename().string(),
                  testing::AnyOf("log.txt", "log.lock", "metrics.jsonl", "run.json", "trace.json.gz"));
    }
    if (fs::exists(folder(name) + "/trace.json.gz")) expect_sound(name, 2);
  }
}

TEST_F(Launch, RanksDieWithTheirLauncher) {
  const pid_t launcher =
      start("orphan", std::string(RANKLAB_BINARY) + " launch --nproc-per-node 2 " + kEndless + log("orphan"));
  ASSERT_TRUE(wait_for_steps("orphan", 20));
  ASSERT_EQ(ranks_of("orphan").size(), 2u);
  ::kill(launcher, SIGKILL);
  exit_code_of(launcher);
  expect_nobody_left([&] { return ranks_of("orphan"); });
}

}  // namespace
}  // namespace ranklab
