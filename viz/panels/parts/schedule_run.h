// A short training run that the Schedules panel starts as a separate process, in a temporary folder that is removed
// with the window. When it has ended successfully, its trace is opened; otherwise its last line of output is shown as
// the reason. Only one run at a time; no ImGui. Thread rule: the window's thread.
#pragma once
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "core/base/files/temporary_folder.h"
#include "viz/panels/parts/child_run.h"

namespace ranklab::viz {

class Workspace;

class ScheduleRun {
 public:
  ScheduleRun() = default;
  ScheduleRun(const ScheduleRun&) = delete;
  ScheduleRun& operator=(const ScheduleRun&) = delete;

  // `name` is for messages. Adds --log-dir to the arguments. Errors are shown in status() and the log.
  void start(Workspace& workspace, const std::string& program, std::vector<std::string> arguments,
             const std::string& name);
  // Call once per frame. Requests that the trace of a run that has ended successfully be opened. RETURNS: true while
  // the run is running.
  bool advance(Workspace& workspace);
  void cancel();
  void forget() { status_.clear(); }  // clears the message about the last run

  bool running() const { return child_ != nullptr; }
  bool failed() const { return failed_; }
  std::string status() const;  // "" if there was no run

 private:
  void fail(Workspace& workspace, const std::string& why);

  std::deque<TemporaryFolder> folders_;  // the last one is the current run's, which ends before they are removed
  std::unique_ptr<ChildRun> child_;
  std::string name_, status_;
  bool failed_ = false;
};

}  // namespace ranklab::viz
