// A short training run that the Schedules panel starts as a separate process, in a temporary folder that is removed
// with the window. Its trace is opened when it has ended successfully; otherwise its last line shows why not. One at a
// time; no ImGui. Thread rule: the window's thread.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "viz/panels/parts/child_run.h"

namespace ranklab::viz {

class Workspace;

class ScheduleRun {
 public:
  ScheduleRun() = default;
  ~ScheduleRun();  // ends the run and removes its files
  ScheduleRun(const ScheduleRun&) = delete;
  ScheduleRun& operator=(const ScheduleRun&) = delete;

  // `name` is for messages. Adds --log-dir to the arguments. Errors are shown in status() and the log.
  void start(Workspace& workspace, const std::string& program, std::vector<std::string> arguments,
             const std::string& name);
  // Call once per frame: requests the trace of a run that has ended successfully. True while it runs.
  bool advance(Workspace& workspace);
  void cancel();
  void forget() { status_.clear(); }  // clears the result of the last run

  bool running() const { return child_ != nullptr; }
  bool failed() const { return failed_; }
  std::string status() const;  // "" when there was no run

 private:
  void fail(Workspace& workspace, const std::string& why);

  std::unique_ptr<ChildRun> child_;
  std::string name_, status_;
  bool failed_ = false;
  std::vector<std::string> folders_;  // the last one is the current run's
};

}  // namespace ranklab::viz
