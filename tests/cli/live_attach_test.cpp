// `ranklab train --viz-listen`: a viewer in another process follows the run, holds it and lets it go.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <map>
#include <thread>

#include "core/base/error.h"
#include "core/live/live_client.h"
#include "tests/cli/run_program.h"
#include "tests/eventually.h"

namespace ranklab {
namespace {

using testing::HasSubstr;

class Training {
 public:
  explicit Training(const std::string& name, const std::string& flags) : log_dir_(temporary_path(name)) {
    pid_ = ::fork();
    if (pid_ != 0) return;
    // Milliseconds a step: after Ctrl-C it may take 1.2 seconds, on a busy machine, too.
    const std::string command =
        "exec " RANKLAB_BINARY
        " train --pp 2 --tp 2 --dp 2 --num-layers 2 --hidden-size 32 --num-attention-heads 4 --seq-length 32 --gbs 8 "
        "--mock-data --gemm mkl --eval-interval 0 --sample-tokens 0 --log-dir " +
        log_dir_ + " " + flags + " > " + log_dir_ + ".out 2>&1";
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(98);
  }
  ~Training() {
    if (pid_ > 0) ::kill(pid_, SIGKILL), ::waitpid(pid_, nullptr, 0);
    ::unlink((log_dir_ + ".out").c_str());
  }
  const std::string& log_dir() const { return log_dir_; }
  std::unique_ptr<LiveSource> viewer() const {
    std::unique_ptr<LiveSource> source;
    eventually([&] {
      try {
        source = attach(log_dir_ + "/viz.sock");
      } catch (const Error&) {
        return false;
      }
      return true;
    });
    return source;
  }
  void signal(int number) const { ::kill(pid_, number); }
  int exit_code() {
    int status = -1;
    EXPECT_TRUE(eventually([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; }));
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  std::string output() const {
    std::ifstream in(log_dir_ + ".out");
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }

 private:
  std::string log_dir_;
  pid_t pid_ = -1;
};

TEST(LiveAttachTest, AViewerHoldsFollowsAndLetsGo) {
  Training run("live_follow", "--train-iters 4 --viz-listen --viz-paused");
  const auto source = run.viewer();
  ASSERT_NE(source, nullptr) << run.output();
  ASSERT_TRUE(eventually([&] { return source->status() == LiveStatus::kPaused; }));
  EXPECT_EQ(source->world_size(), 8);
  StepperControl& control = *source->stepper();
  EXPECT_EQ(to_text(control.state().ranks[3].at), "step 0 begins");
  control.step_training(2);
  ASSERT_TRUE(
      eventually([&] { return source->status() == LiveStatus::kPaused && current_step(control.state()) == 2; }));
  std::map<int, int> losses;  // by step, as rank 0 recorded them
  const auto take = [&] {
    for (const RankTrace& batch : source->take())
      for (const Event& event : batch.events)
        if (batch.global_rank == 0 && batch.names[event.name] == "loss") ++losses[event.step];
  };
  EXPECT_TRUE(eventually([&] { return take(), losses.size() == 2; }));
  control.resume();
  EXPECT_TRUE(eventually([&] { return source->status() == LiveStatus::kEnded; }));
  EXPECT_EQ(source->message(), "the run is done");
  take();
  EXPECT_EQ(losses, (std::map<int, int>{{0, 1}, {1, 1}, {2, 1}, {3, 1}}));
  EXPECT_EQ(run.exit_code(), 0) << run.output();
  EXPECT_THAT(run.output(), HasSubstr("ranklab viz --attach " + run.log_dir() + "/viz.sock"));
  struct stat gone {};
  EXPECT_NE(::stat((run.log_dir() + "/viz.sock").c_str(), &gone), 0);
}

TEST(LiveAttachTest, AViewerThatLeavesARunHeldLeavesItHeldForTheNext) {
  Training run("live_leave", "--train-iters 100000 --viz-listen --viz-paused");
  {
    const auto source = run.viewer();
    ASSERT_NE(source, nullptr) << run.output();
    ASSERT_TRUE(eventually([&] { return source->status() == LiveStatus::kPaused; }));
    const uint64_t version = source->stepper()->state().version;
    source->stepper()->resume();
    source->stepper()->pause();  // sooner than the steps are over
    ASSERT_TRUE(eventually([&] {
      return source->stepper()->state().version > version && source->status() == LiveStatus::kPaused;
    })) << run.output();
  }
  const auto next = run.viewer();
  ASSERT_NE(next, nullptr);
  ASSERT_TRUE(eventually([&] { return next->status() == LiveStatus::kPaused; }));
  next->stepper()->resume();
  EXPECT_TRUE(eventually([&] { return next->status() == LiveStatus::kFollowing; })) << run.output();
  run.signal(SIGINT);
  EXPECT_EQ(run.exit_code(), 130) << run.output();
}

TEST(LiveAttachTest, CtrlCEndsARunThatAViewerHolds) {
  Training run("live_interrupt", "--train-iters 1000 --viz-listen --viz-paused");
  const auto source = run.viewer();
  ASSERT_NE(source, nullptr) << run.output();
  ASSERT_TRUE(eventually([&] { return source->status() == LiveStatus::kPaused; }));
  run.signal(SIGINT);
  EXPECT_EQ(run.exit_code(), 130) << run.output();
  EXPECT_THAT(run.output(), HasSubstr("interrupted after 1 step "));
  EXPECT_TRUE(eventually([&] { return source->status() == LiveStatus::kEnded; }));
}

TEST(LiveAttachTest, AFailedRunSaysWhy) {
  Training run("live_failed", "--train-iters 5 --lr 1e38 --lr-warmup-iters 0 --clip-grad 0 --viz-listen --viz-paused");
  const auto source = run.viewer();
  ASSERT_NE(source, nullptr) << run.output();
  ASSERT_TRUE(eventually([&] { return source->status() == LiveStatus::kPaused; }));
  source->stepper()->resume();
  EXPECT_TRUE(eventually([&] { return source->status() == LiveStatus::kEnded; }));
  EXPECT_THAT(source->message(), HasSubstr("training diverged"));
  EXPECT_EQ(run.exit_code(), 7);
}

TEST(LiveAttachTest, AWrongPathIsRefused) {
  const Outcome outcome = run_command(RANKLAB_BINARY " train --mock-data --viz-listen /no/folder/x.sock --log-dir " +
                                      temporary_path("live_refused") + " 2>&1");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("cannot listen at '/no/folder/x.sock'"));
}

}  // namespace
}  // namespace ranklab
