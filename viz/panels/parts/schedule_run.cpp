#include "viz/panels/parts/schedule_run.h"

#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "viz/panels/parts/workspace.h"

namespace ranklab::viz {
void ScheduleRun::start(Workspace& workspace, const std::string& program, std::vector<std::string> arguments,
                        const std::string& name) {
  if (running()) return;
  name_ = name;
  failed_ = false;
  try {
    const std::string folder = folders_.emplace_back("ranklab-schedule", "run it").path().string();
    arguments.insert(arguments.end(), {"--log-dir", folder});
    child_ = std::make_unique<ChildRun>(program, arguments, folder + "/output.txt");
    workspace.log(LogLine::Level::kInfo, "running " + name_ + ": " + program + " " + join(arguments, " "));
  } catch (const Error& error) {
    fail(workspace, error.what());
  }
}

bool ScheduleRun::advance(Workspace& workspace) {
  if (child_ == nullptr) return false;
  const ChildState state = child_->poll();
  if (state == ChildState::kRunning) return true;
  const std::unique_ptr<ChildRun> ended = std::move(child_);
  if (state == ChildState::kFailed) {
    const std::string line = ended->last_line();
    fail(workspace, name_ + " failed, " + ended->end_text() + (line.empty() ? "" : ": " + line));
    return false;
  }
  status_ = strprintf("%s %s %.1f s", name_.c_str(), state == ChildState::kCancelled ? "was cancelled after" : "ran",
                      ended->seconds());
  workspace.log(LogLine::Level::kInfo, status_);
  if (state == ChildState::kSucceeded) workspace.requests.open_trace = folders_.back().path().string();
  return false;
}

void ScheduleRun::cancel() {
  if (child_ != nullptr) child_->cancel();
}

std::string ScheduleRun::status() const {
  if (child_ == nullptr) return status_;
  return (child_->cancel_requested() ? "cancelling " : "running ") + name_ +
         strprintf(" ... %.1f s", child_->seconds());
}

void ScheduleRun::fail(Workspace& workspace, const std::string& why) {
  failed_ = true;
  status_ = why;
  workspace.log(LogLine::Level::kError, why);
}

}  // namespace ranklab::viz
