// The observer of a rank's traced calls, which can repeat them later: a repeated call takes its time on the lane of
// such calls, in its place among them, without being made. Used where the costs of a pass are measured once for many
// passes (core/plan/pass_script.h). Thread rule: its rank's thread.
#pragma once
#include <memory>

#include "core/comm/communicator.h"

namespace ranklab {

// A call without its tensors. REQUIRES: its communicator's RankContext is alive.
class RepeatableCall {
 public:
  virtual ~RepeatableCall() = default;
  // Posts it again, now. Its wait() takes virtual time and returns no tensor. Members that had posted later than this
  // rank are assumed to do so by as much again. `traced`: its event is recorded.
  virtual WorkPtr repeat(bool traced) = 0;
};

class CallWatch {
 public:
  virtual ~CallWatch() = default;
  virtual void posted(const Work& call, Axis axis, std::shared_ptr<RepeatableCall> repeatable) = 0;
  // Before and after the clock moves to the end of the call, in its first wait().
  virtual void waits(const Work& call) = 0;
  virtual void waited(const Work& call) = 0;
};

inline thread_local CallWatch* call_watch_of_thread = nullptr;

}  // namespace ranklab
