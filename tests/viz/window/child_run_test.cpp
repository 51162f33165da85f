// Programs started beside the window, by a shell in their place; and the runs of the Schedules panel on top of them.
#include "viz/panels/parts/child_run.h"
#include "tests/eventually.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "core/base/error.h"
#include "tests/cli/run_program.h"
#include "viz/panels/parts/schedule_run.h"
#include "viz/panels/parts/workspace.h"

namespace ranklab::viz {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class ChildRunTest : public testing::Test {
 protected:
  std::unique_ptr<ChildRun> shell(const std::string& script) const {
    return std::make_unique<ChildRun>("/bin/sh", std::vector<std::string>{"-c", script}, output_);
  }
  static ChildState end_of(ChildRun& child) {
    EXPECT_TRUE(eventually([&] { return child.poll() != ChildState::kRunning; }));
    return child.state();
  }
  std::string output_ = temporary_path("child_output");
};

TEST_F(ChildRunTest, succeeds) {
  const auto child = shell("echo to stdout; echo to stderr >&2; echo ' '");
  EXPECT_EQ(end_of(*child), ChildState::kSucceeded);
  EXPECT_EQ(child->end_text(), "exit code 0");
  EXPECT_EQ(child->last_line(), "to stderr");
  EXPECT_EQ(child->seconds(), child->seconds());  // at rest
  child->cancel();
  EXPECT_EQ(child->poll(), ChildState::kSucceeded);  // too late
}

TEST_F(ChildRunTest, fails_with_its_last_line) {
  const auto child = shell("echo working; echo 'no such schedule; got x' >&2; exit 3");
  EXPECT_EQ(end_of(*child), ChildState::kFailed);
  EXPECT_EQ(child->end_text(), "exit code 3");
  EXPECT_EQ(child->last_line(), "no such schedule; got x");
}

TEST_F(ChildRunTest, finds_the_last_line_of_much_output) {
  const auto child = shell("i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; kill -9 $$");
  EXPECT_EQ(end_of(*child), ChildState::kFailed);
  EXPECT_EQ(child->end_text(), "signal 9 (Killed)");
  EXPECT_EQ(child->last_line(), "line 2999");
}

TEST_F(ChildRunTest, is_cancelled_whatever_it_says_then) {
  const auto child = shell("trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done");
  ASSERT_TRUE(eventually([&] { return child->last_line() == "ready"; }));
  EXPECT_EQ(child->poll(), ChildState::kRunning);
  EXPECT_EQ(child->end_text(), "");
  child->cancel();
  EXPECT_EQ(end_of(*child), ChildState::kCancelled);
  EXPECT_EQ(child->end_text(), "exit code 0");
}

// Whether a process of this number still exists, be it a zombie.
bool exists(int pid) { return ::kill(pid, 0) == 0 || errno != ESRCH; }

TEST_F(ChildRunTest, ends_with_the_object) {
  for (const char* script : {"echo $$; exec sleep 1000", "trap '' TERM; echo $$; while :; do sleep 0.01; done"}) {
    auto child = shell(script);
    ASSERT_TRUE(eventually([&] { return !child->last_line().empty(); }));
    const int pid = std::atoi(child->last_line().c_str());
    ASSERT_GT(pid, 1);
    EXPECT_TRUE(exists(pid));
    child.reset();
    EXPECT_FALSE(exists(pid)) << script;
  }
}

TEST_F(ChildRunTest, that_cannot_be_started_says_so) {
  try {
    ChildRun child("/no/such/program", {"train"}, output_);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(StartsWith("[run it]"), HasSubstr("'/no/such/program': No such file")));
  }
}

// A shell in the program's place: $1 is --log-dir, $2 its folder.
class ScheduleRunTest : public testing::Test {
 protected:
  void start(const std::string& script) {
    run_.emplace();
    run_->start(workspace_, "/bin/sh", {"-c", script, "ranklab"}, "1f1b, p 2, m 4");
  }
  void wait() {
    EXPECT_TRUE(eventually([&] { return !run_->advance(workspace_); }));
  }
  const LogLine& last_log() const { return workspace_.log_lines().back(); }
  Workspace workspace_;
  std::optional<ScheduleRun> run_;
};

TEST_F(ScheduleRunTest, asks_for_the_trace_and_removes_its_files_at_the_end) {
  start("echo of the run >\"$2/trace.json.gz\"");
  EXPECT_TRUE(run_->running());
  EXPECT_THAT(run_->status(), StartsWith("running 1f1b, p 2, m 4 ... "));
  wait();
  EXPECT_FALSE(run_->failed());
  EXPECT_THAT(run_->status(), StartsWith("1f1b, p 2, m 4 ran "));
  EXPECT_EQ(last_log().text, run_->status());
  const std::string folder = workspace_.requests.open_trace;
  EXPECT_TRUE(std::filesystem::exists(folder + "/trace.json.gz")) << folder;
  run_.reset();
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST_F(ScheduleRunTest, shows_the_last_line_of_a_refusal) {
  start("echo 'ranklab: error: [flag --pp] too many' >&2; exit 2");
  wait();
  EXPECT_TRUE(run_->failed());
  EXPECT_EQ(run_->status(), "1f1b, p 2, m 4 failed, exit code 2: ranklab: error: [flag --pp] too many");
  EXPECT_EQ(last_log().level, LogLine::Level::kError);
  EXPECT_EQ(last_log().text, run_->status());
  EXPECT_EQ(workspace_.requests.open_trace, "");
}

TEST_F(ScheduleRunTest, ends_what_still_runs_and_removes_its_files) {
  const std::string told = temporary_path("pid");
  std::filesystem::remove(told);  // of the repetition before
  start("echo \"$$ $2\" >" + told + ".new; mv " + told + ".new " + told + "; exec sleep 1000");
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(told); }));
  int pid = 0;
  std::string folder;
  std::ifstream(told) >> pid >> folder;
  EXPECT_TRUE(exists(pid));
  EXPECT_TRUE(std::filesystem::exists(folder + "/output.txt"));
  run_.reset();
  EXPECT_FALSE(exists(pid));
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST_F(ScheduleRunTest, says_when_there_is_no_program) {
  run_.emplace();
  run_->start(workspace_, "/no/such/program", {"train"}, "1f1b");
  EXPECT_FALSE(run_->running());
  EXPECT_TRUE(run_->failed());
  EXPECT_THAT(run_->status(), HasSubstr("cannot start the program"));
  EXPECT_EQ(last_log().level, LogLine::Level::kError);
}

}  // namespace
}  // namespace ranklab::viz
