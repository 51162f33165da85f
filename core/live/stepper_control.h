// The commands of a stepper, the same for a world in this process (Stepper) and one behind a socket (LiveClient). A
// window or a prompt uses a StepperControl& without knowing where the world is. Commands return at once, and state()
// shows their effect: compare StepperState::version. Thread rule: any thread.
#pragma once
#include "core/live/stepper_state.h"

namespace ranklab {

class StepperControl {
 public:
  virtual ~StepperControl() = default;

  virtual StepperState state() const = 0;

  // Holds each rank at its next boundary. No effect when paused or ended.
  virtual void pause() = 0;
  // The following have an effect only when paused.
  virtual void resume() = 0;  // until a breakpoint, pause() or the end
  // One event: the parked rank with the smallest virtual time (ties: the lowest rank) runs to its next boundary, and so
  // do the ranks that waited for it. The order is the same in every run.
  virtual void step_events(int64_t count) = 0;
  // Rank r runs for `count` boundaries. While it waits in a verb, only the rank that it waits for runs.
  virtual void step_rank(int global_rank, int64_t count) = 0;
  // Every rank runs to its next action that belongs to another microbatch or to none (the optimizer, the end of the
  // step).
  virtual void step_microbatch() = 0;
  // Every rank runs to the beginning of the training step that is `count` steps later.
  virtual void step_training(int64_t count) = 0;

  // Takes effect at once; its id shows in state().
  virtual void add_breakpoint(const Breakpoint& breakpoint) = 0;
  virtual void remove_breakpoint(int id) = 0;  // no effect when it does not exist
};

}  // namespace ranklab
