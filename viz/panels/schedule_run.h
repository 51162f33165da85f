// A short training run that the Schedules panel starts as a process of its own, in a temporary folder that goes with
// the window. Its trace is opened when it has ended well; its last line says why it has not. One at a time; no ImGui.
// Thread rule: the window's thread.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "viz/panels/child_run.h"

namespace ranklab::viz {

class Workspace;

class ScheduleRun {
 public:
  ScheduleRun() = default;
  ~ScheduleRun();  // ends the run and removes its files
  ScheduleRun(const ScheduleRun&) = delete;
  ScheduleRun& operator=(const ScheduleRun&) = delete;

  // `name` is for messages. Adds --log-dir to the arguments. What goes wrong is in status() and the log.
  void start(Workspace& workspace, const std::string& program, std::vector<std::string> arguments,
             const std::string& name);
  // Once a frame: asks for the trace of a run that has ended well. True while it runs.
  bool advance(Workspace& workspace);
  void cancel();
  void forget() { status_.clear(); }  // what the last one came to

  bool running() const { return child_ != nullptr; }
  bool failed() const { return failed_; }
  std::string status() const;  // "" when there has been none

 private:
  void fail(Workspace& workspace, const std::string& why);

  std::unique_ptr<ChildRun> child_;
  std::string name_, status_;
  bool failed_ = false;
  std::vector<std::string> folders_;  // the last one is the run's
};

}  // namespace ranklab::viz
