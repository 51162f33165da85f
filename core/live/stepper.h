// Pauses a live simulated world and resumes it event by event.
//
// Every rank calls arrive() at its event boundaries (Tracer::at_boundary), and the world reports when a rank sleeps in
// a verb waiting for a peer (blocked) and when it no longer does (unblocked). The world is *paused* when no rank runs:
// each is parked at a boundary, blocked in a verb by a parked rank, or done. Only then is the next move decided, so the
// order of events depends on the ranks' programs and virtual times, never on the machine: ranks are a Kahn network
// (Kahn 1974), whose state after a set of moves does not depend on the order in which they were made. While breakpoints
// may apply, ranks run one at a time in virtual-time order, so a breakpoint is hit in the same state, with the same
// hash, in every run; without breakpoints they run concurrently. A held rank counts as neither hung nor deadlocked; a
// deadlock of blocked ranks is still detected (backends/cpu_sim/watch). Results are bit-identical whether stepped or
// not, because no number in a run depends on wall time.
//
// Cost: without a stepper one branch; with one and running freely, about 0.1 us per boundary; with breakpoints a thread
// switch per boundary. Thread rule: any thread, unless stated otherwise.
#pragma once
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/live/stepper_control.h"
#include "core/live/stepper_probe.h"
#include "core/trace/boundary.h"
#include "core/trace/event.h"

namespace ranklab {

// One recorded event, kept to show a rank's most recent events.
struct RecordedEvent {
  std::string name;
  Event event;
};

class Stepper final : public StepperControl, public RankHolder {
 public:
  // start_paused: each rank is held at its first boundary.
  explicit Stepper(int world_size, bool start_paused = false);
  ~Stepper() override;
  Stepper(const Stepper&) = delete;
  Stepper& operator=(const Stepper&) = delete;

  // Commands (stepper_control.h).
  StepperState state() const override;
  void pause() override;
  void resume() override;
  void step_events(int64_t count) override;
  void step_rank(int global_rank, int64_t count) override;
  void step_microbatch() override;
  void step_training(int64_t count) override;
  void add_breakpoint(const Breakpoint& breakpoint) override;
  void remove_breakpoint(int id) override;

  int world_size() const;
  // Waits at most `limit`; true when the world is paused or the run has ended.
  bool wait_paused(std::chrono::milliseconds limit);
  // Lets every rank run to the end without being held again: Ctrl-C, quit.
  void detach();

  // While paused: the rank's objects (null before they are built), and the last events that it recorded, oldest first.
  std::shared_ptr<const RankProbe> probe(int global_rank) const;
  std::vector<RecordedEvent> last_events(int global_rank) const;

  // Called by the runtime, on the rank's own thread.
  void set_probe(int global_rank, std::shared_ptr<const RankProbe> probe);
  void arrive(int global_rank, Boundary boundary) override;
  void recorded(int global_rank, const Event& event, std::string_view name) override;  // evaluates conditions

  // Called by the world. Both ends of a wait are reported while the world holds one lock, so that they arrive in order.
  void begin_run();  // before ranks start
  // called again when fewer members are missing
  void blocked(int global_rank, std::string inside, std::vector<int> waits_for);
  void unblocked(int global_rank);
  void rank_ended(int global_rank);
  void end_run();  // all ranks are done, or the world failed: releases all
  // The time, on wall_now_ns(), since which the rank has not been held; nothing while it is held. For the hang
  // detector.
  std::optional<int64_t> free_since_ns(int global_rank) const;

 private:
  struct World;
  std::unique_ptr<World> world_;
};

}  // namespace ranklab
