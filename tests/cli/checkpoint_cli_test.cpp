// --save and --load as a user meets them: Ctrl-C, a second run in the same folder, a full disk, processes in place of
// threads, and what `ranklab ckpt` says of the folders.
#include <gmock/gmock.h>

#include <memory>

#include "tests/cli/checkpoint_runs.h"
#include "tests/eventually.h"
#include "tests/fair_clock.h"
#include "tests/free_port.h"

namespace ranklab::checkpoint_runs {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// The test ends it, sooner or later: a number of steps could be over before a busy machine lets the test do anything.
const Words kEndless = {"--train-iters", "1000000"};

class CheckpointCli : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  std::string log(const std::string& name) const { return folder_ + "/log_" + name; }
  std::string saved(const std::string& name) const { return folder_ + "/ck_" + name; }
  Words words(const std::string& name, const Words& more) const {
    return kTinyTraining + Words{"--log-dir", log(name), "--save", saved(name)} + more;
  }
  int train(const std::string& name, const Words& more, const std::string& command = "train") const {
    return Child(command, words(name, more), output()).finish();
  }
  std::string output() const { return folder_ + "/output"; }
  std::string said() const { return text_of(output()); }
  static Outcome ckpt(const std::string& arguments) {
    return run_command(std::string(RANKLAB_PROGRAM) + " ckpt " + arguments + " 2>&1");
  }
  bool wait_for_step(const std::string& name, int64_t step) const {
    return eventually([&] {
      const std::vector<StepFolder> folders = step_folders(saved(name));
      return !folders.empty() && folders[0].step >= step;
    });
  }
  // A launcher's children.
  static std::vector<pid_t> ranks_of(const Child& launcher) {
    const Outcome ranks = run_command("cat /proc/" + std::to_string(launcher.pid()) + "/task/*/children");
    std::istringstream pids(ranks.output);
    std::vector<pid_t> children;
    for (pid_t pid = 0; pids >> pid;) children.push_back(pid);
    return children;
  }
  // An error in the very first step, when no checkpoint exists yet.
  bool wait_for_steps(const std::string& name) const {
    return eventually([&] { return !text_of(log(name) + "/metrics.jsonl").empty(); });
  }
  const std::string folder_ = temporary_path("ranklab_checkpoint_cli");
};

TEST_F(CheckpointCli, ASignalSavesAndTheNextRunGoesOn) {
  const Words how = {"--save-interval", "50", "--load", "auto", "--lr-decay-iters", "200", "--lr-warmup-iters", "20"};
  int64_t done = 0;
  for (const int signal : {SIGINT, SIGTERM}) {
    Child child("train", words("parts", how + kEndless), output());
    ASSERT_TRUE(wait_for_step("parts", done + 50)) << said();
    EXPECT_EQ(child.finish(signal), 128 + signal) << said();
    EXPECT_THAT(said(), HasSubstr("interrupted after"));
    done = Checkpoint(checkpoint_named(saved("parts"))).manifest().step;
    EXPECT_EQ(loss_bits(log("parts")).size(), static_cast<size_t>(done));  // the last step is saved, too
  }
  const Words steps = how + Words{"--train-iters", std::to_string(done + 20)};
  ASSERT_EQ(train("parts", steps + Words{"--trace"}), 0) << said();
  EXPECT_THAT(said(), AllOf(HasSubstr("loaded"), HasSubstr("saved by dp 2, pp 2"), HasSubstr("since the checkpoint"),
                            HasSubstr("trace.json.gz")));  // of its own first steps
  ASSERT_EQ(train("whole", steps), 0) << said();
  EXPECT_EQ(loss_bits(log("parts")), loss_bits(log("whole")));
  EXPECT_EQ(text_of(log("parts") + "/log.txt"), text_of(log("whole") + "/log.txt"));
  EXPECT_EQ(ckpt("diff " + saved("whole") + " " + saved("parts")).exit_code, 0);
}

// Losing a terminal or a connection loses no work, and both the shell and the kernel may report it. Under nohup the run
// continues.
TEST_F(CheckpointCli, AHangupSavesUnlessItIsIgnored) {
  const auto hang_up = [&](const std::string& name, const std::string& command) {
    const Words group = command == "launch" ? Words{"--nproc-per-node", "4"} : Words{};
    Child child(command, words(name, group + Words{"--train-iters", "1000000", "--log-interval", "1000000"}), output());
    EXPECT_TRUE(wait_for_steps(name)) << said();
    ::kill(child.pid(), SIGHUP);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ::kill(child.pid(), SIGHUP);
    if (name.starts_with("nohup")) {
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      EXPECT_FALSE(child.ended()) << said();
      EXPECT_TRUE(step_folders(saved(name)).empty());
      ::kill(child.pid(), SIGTERM);
    }
    EXPECT_EQ(child.finish(), 128 + SIGTERM) << name << said();
    EXPECT_EQ(sound_checkpoints(saved(name)), 1) << name << said();
  };
  const auto before = std::signal(SIGHUP, SIG_DFL);
  hang_up("train", "train");
  hang_up("launch", "launch");
  std::signal(SIGHUP, SIG_IGN);
  hang_up("nohup_train", "train");
  hang_up("nohup_launch", "launch");
  std::signal(SIGHUP, before);
}

TEST_F(CheckpointCli, OneRunAtATime) {
  Child first("train", words("one", {"--train-iters", "1000000", "--save-interval", "10"}), output());
  ASSERT_TRUE(wait_for_step("one", 10)) << said();
  const std::string other = folder_ + "/other";
  Child second("train", words("one", {"--load", "auto"}), other);
  EXPECT_EQ(second.finish(), 2);
  EXPECT_THAT(text_of(other), AllOf(HasSubstr("another run saves to"), HasSubstr("pid " + std::to_string(first.pid())),
                                    HasSubstr("started")));
  EXPECT_EQ(first.finish(SIGKILL), 128 + SIGKILL);
  EXPECT_EQ(train("one", {"--load", "auto", "--train-iters", "1"}), 0) << said();  // the lock went with the process
  EXPECT_THAT(said(), HasSubstr("nothing is left of --train-iters 1"));
  EXPECT_THAT(said(), AllOf(HasSubstr("no step was left to train"), Not(HasSubstr("loss 0.0000"))));
}

// The error distinguishes a copy that lost a file from a wrong path.
TEST_F(CheckpointCli, AMissingFileIsABrokenCheckpoint) {
  ASSERT_EQ(train("lost", {"--train-iters", "2"}), 0) << said();
  const std::string step = saved("lost") + "/step_00000002";
  for (const char* name : {"rank_00001.safetensors", "manifest.json"}) {
    fs::remove(step + "/" + name);
    const Outcome verified = ckpt("verify " + saved("lost"));
    EXPECT_EQ(verified.exit_code, 8) << verified.output;
    EXPECT_THAT(verified.output, AllOf(HasSubstr(name), HasSubstr("incomplete"), HasSubstr("no such file")));
  }
}

TEST_F(CheckpointCli, ProcessesSaveAndLoadLikeThreads) {
  const Words steps = {"--train-iters", "6", "--zero-stage", "1"};
  ASSERT_EQ(train("threads", steps), 0) << said();
  const Words group = steps + Words{"--nproc-per-node", "4", "--load", "auto"};
  ASSERT_EQ(train("processes", group + Words{"--save-interval", "3"}, "launch"), 0) << said();
  EXPECT_THAT(said(), HasSubstr("checkpoint step 3: "));
  fs::remove_all(saved("processes") + "/step_00000006");
  ASSERT_EQ(train("processes", group, "launch"), 0) << said();
  EXPECT_EQ(loss_bits(log("processes")), loss_bits(log("threads")));
  EXPECT_EQ(ckpt("diff " + saved("processes") + " " + saved("threads")).exit_code, 0);
  EXPECT_FALSE(fs::exists(saved("processes") + "/step_00000006/rank_00001.json"));
}

// The launcher starts the group again, and --load auto makes that a recovery.
TEST_F(CheckpointCli, ARankThatIsKilledCostsTheStepsSinceTheLastCheckpoint) {
  const Words how = {"--save-interval", "10", "--load", "auto", "--lr-decay-iters", "100", "--lr-warmup-iters", "10"};
  Child group("launch", words("harmed", how + kEndless + Words{"--nproc-per-node", "4", "--max-restarts", "2"}),
              output());
  ASSERT_TRUE(wait_for_step("harmed", 10)) << said();
  const std::vector<pid_t> children = ranks_of(group);
  ASSERT_EQ(children.size(), 4);
  ::kill(children[2], SIGKILL);
  ASSERT_TRUE(eventually([&] { return said().find("loaded") != std::string::npos; })) << said();
  ASSERT_TRUE(wait_for_step("harmed", step_folders(saved("harmed"))[0].step + 20)) << said();
  EXPECT_EQ(group.finish(SIGTERM), 128 + SIGTERM) << said();
  EXPECT_THAT(said(), HasSubstr("restarting all ranks (1 of 2)"));
  const int64_t done = Checkpoint(checkpoint_named(saved("harmed"))).manifest().step;
  ASSERT_EQ(train("unharmed", how + Words{"--train-iters", std::to_string(done)}), 0) << said();
  EXPECT_EQ(loss_bits(log("harmed")), loss_bits(log("unharmed")));
  EXPECT_EQ(ckpt("diff " + saved("harmed") + " " + saved("unharmed")).exit_code, 0);
}

// A scheduler signals only the nodes that it takes back: all ranks still end after one step, which is saved.
TEST_F(CheckpointCli, ASignalOnAnyNodeSavesOnAll) {
  std::ofstream(folder_ + "/token") << "0123456789abcdef0123456789abcdef\n";
  const std::string port = std::to_string(free_port()), far = folder_ + "/far";
  const auto node = [&](int rank, const std::string& output) {
    const Words group = {"--nnodes",          "2",
                         "--node-rank",       std::to_string(rank),
                         "--nproc-per-node",  "2",
                         "--master-addr",     "127.0.0.1",
                         "--master-port",     port,
                         "--max-restarts",    "1",
                         "--rdzv-token-file", folder_ + "/token"};
    const Words steps = {"--train-iters", "1000000", "--save-interval", "20", "--log-interval", "1000000"};
    return std::make_unique<Child>("launch", words("nodes", steps + group), output);
  };
  const auto first = node(0, output()), second = node(1, far);
  ASSERT_TRUE(wait_for_step("nodes", 20)) << said() << text_of(far);
  EXPECT_EQ(second->finish(SIGTERM), 128 + SIGTERM) << text_of(far);
  EXPECT_EQ(first->finish(), 128 + SIGTERM) << said();
  EXPECT_THAT(said(), AllOf(HasSubstr("interrupted after"), Not(HasSubstr("abandoned")), Not(HasSubstr("restarting"))));
  const int64_t done = Checkpoint(checkpoint_named(saved("nodes"))).manifest().step;
  EXPECT_EQ(loss_bits(log("nodes")).size(), static_cast<size_t>(done));
}

// Files of at most 4 KiB, which is how a full disk looks to the program.
TEST_F(CheckpointCli, AFullDiskEndsTheRunAndKeepsTheCheckpoint) {
  ASSERT_EQ(train("full", {"--train-iters", "4"}), 0) << said();
  std::string command = "trap '' XFSZ; ulimit -f 4; exec " + std::string(RANKLAB_PROGRAM) + " train";
  for (const std::string& word :
       words("full", {"--train-iters", "1000", "--save-interval", "5", "--load", "auto", "--log-interval", "1000"}))
    command += " " + word;
  const Outcome outcome = run_command("bash -c \"" + command + "\" 2>&1");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.output,
              AllOf(HasSubstr("cannot write the file"), HasSubstr("step_00000005"), HasSubstr("are needed")));
  EXPECT_EQ(sound_checkpoints(saved("full")), 1);
  ASSERT_EQ(train("full", {"--train-iters", "8", "--load", "auto"}), 0) << said();
  EXPECT_EQ(step_folders(saved("full"))[0].step, 8);
}

// Rank 0 waits for the part of another process, which will not arrive: it removes its own part before all have ended.
TEST_F(CheckpointCli, AProcessThatCannotWriteItsPartLeavesNoHalfCheckpoint) {
  std::string train = std::string(RANKLAB_BINARY) + " train";
  for (const std::string& word : words("part", {"--train-iters", "1000", "--save-interval", "5"})) train += " " + word;
  const Outcome outcome = run_command("'" RANKLAB_BINARY
                                      "' launch --nproc-per-node 4 -- sh -c 'test $RANK != 3 || "
                                      "ulimit -f 8; exec " +
                                      train + "' 2>&1");
  EXPECT_EQ(outcome.exit_code, 1) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("rank_00003.safetensors"));
  EXPECT_EQ(sound_checkpoints(saved("part")), 0);
  // On a busy machine another process may write its part after rank 0 has cleaned up; the next run removes it.
  for (const fs::directory_entry& entry : fs::directory_iterator(saved("part")))
    EXPECT_FALSE(fs::exists(entry.path() / "rank_00000.safetensors")) << entry.path();
}

// The last checkpoint cannot be written: the run ends with that error, not with the signal's 130.
TEST_F(CheckpointCli, ASignalAfterWhichNothingCanBeSavedIsAnError) {
  const Words steps = {"--train-iters", "1000000", "--log-interval", "1000000"};
  for (const std::string command : {"train", "launch"}) {
    const Words group = command == "launch" ? Words{"--nproc-per-node", "4"} : Words{};
    const std::string name = "unsaved_" + command;
    Child child(command, words(name, steps + group), output());
    ASSERT_TRUE(wait_for_steps(name)) << said();
    fs::remove_all(saved(name));
    std::ofstream(saved(name)) << "no folder";  // nor may root write into it
    EXPECT_EQ(child.finish(SIGINT), 1) << command << said();
    EXPECT_THAT(said(), HasSubstr("cannot create a folder for the checkpoint")) << command;
    EXPECT_THAT(text_of(log(name) + "/run.json"), HasSubstr("cannot create a folder")) << command;
  }
}

// No rank waits a minute for a checkpoint that can no longer be saved.
TEST_F(CheckpointCli, ASignalWhileARankIsStoppedEndsAllSoon) {
  for (const bool stopped_first : {true, false}) {
    const std::string name = stopped_first ? "before" : "after";
    Child group("launch", words(name, {"--train-iters", "1000000", "--nproc-per-node", "4"}), output());
    ASSERT_TRUE(wait_for_steps(name)) << said();
    const pid_t rank = ranks_of(group)[2];
    const FairClock clock;
    ::kill(stopped_first ? rank : group.pid(), stopped_first ? SIGSTOP : SIGINT);
    ::kill(stopped_first ? group.pid() : rank, stopped_first ? SIGINT : SIGSTOP);
    EXPECT_EQ(group.finish(), 128 + SIGINT) << said();
    EXPECT_LT(clock.seconds(), 15) << said();
    if (!stopped_first) continue;  // the signal may have come in the midst of its end
    EXPECT_THAT(said(), HasSubstr("is stopped and cannot finish its step: it is killed"));
  }
}

TEST_F(CheckpointCli, CkptReadsFolders) {
  ASSERT_EQ(train("a", {"--train-iters", "2", "--save-interval", "1", "--zero-stage", "2"}), 0) << said();
  const Outcome shown = ckpt("inspect " + saved("a"));
  EXPECT_EQ(shown.exit_code, 0);
  EXPECT_THAT(shown.output, AllOf(HasSubstr("step 2 (saved by dp 2, pp 2, ZeRO 2)"), HasSubstr("16 samples consumed"),
                                  HasSubstr("weight/layers.1.mlp.down.weight"), HasSubstr("[16, 32]")));
  const nlohmann::json data = nlohmann::json::parse(ckpt("inspect --json " + saved("a")).output)["data"];
  EXPECT_EQ(data["layout"]["dp"], 2);
  EXPECT_EQ(data["config"]["train.train_iters"], "2");
  EXPECT_EQ(data["files"].size(), 4);
  EXPECT_THAT(ckpt("verify " + saved("a") + "/step_00000001").output, HasSubstr("sound, step 1"));
  const Outcome differ = ckpt("diff " + saved("a") + "/step_00000001 " + saved("a"));
  EXPECT_EQ(differ.exit_code, 4);
  EXPECT_THAT(differ.output,
              AllOf(HasSubstr("step: 1 in a, 2 in b"), HasSubstr("weight/head.weight: F32 [256, 16]: ")));
  fs::resize_file(saved("a") + "/step_00000002/rank_00003.safetensors", 5000);
  const Outcome broken = ckpt("verify " + saved("a"));
  EXPECT_EQ(broken.exit_code, 8);
  EXPECT_THAT(broken.output, HasSubstr("rank_00003.safetensors"));
}

TEST_F(CheckpointCli, JsonTellsCheckpointsToo) {
  ASSERT_EQ(train("j", {"--train-iters", "2", "--save-interval", "1", "--json"}), 0);
  std::vector<int64_t> steps;
  std::istringstream lines(said());
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_object() && json.contains("checkpoint")) steps.push_back(json["checkpoint"]);
  }
  EXPECT_THAT(steps, ::testing::ElementsAre(1, 2));
}

}  // namespace
}  // namespace ranklab::checkpoint_runs
