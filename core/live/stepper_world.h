// The implementation of a Stepper: every rank's seat, the goal of the current command, and the decisions made when no
// rank runs. Thread rule: a seat's own part is written by its rank's thread while it runs and read by others under the
// mutex while it does not; everything else is guarded by the mutex, except that the atomic flags are read without it.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "core/live/stepper.h"

namespace ranklab {
namespace stepping {

struct Seat {
  static constexpr size_t kRecent = 64;

  int global_rank = 0;
  // Written by the rank's own thread.
  Boundary at;
  int64_t events = 0;
  uint64_t hash = 0;
  std::deque<RecordedEvent> recent;
  // Guarded by the mutex.
  RankActivity activity = RankActivity::kRunning;
  std::string inside;
  std::vector<int> waits_for;
  bool go = false;
  std::condition_variable wake;
  int64_t free_since_ns = 0;
  std::shared_ptr<const RankProbe> probe;
  int64_t events_at_start = 0;  // at the start of the current command
  int microbatch_at_start = -1;

  void come_to(Boundary boundary);
  void note(const Event& event, std::string_view name);
};

// The goal of a command.
struct Goal {
  enum Kind { kNone, kEvents, kRank, kMicrobatch, kStep };
  Kind kind = kNone;
  int64_t count = 0;    // kEvents: remaining; kRank: boundaries to reach; kStep: steps
  int global_rank = 0;  // kRank
};

struct Watched {
  Breakpoint breakpoint;
  int stopped_in_step = -1;  // a condition on a counter pauses once per step
};

}  // namespace stepping

struct Stepper::World {
  explicit World(int world_size);

  bool has(int global_rank) const { return global_rank >= 0 && global_rank < static_cast<int>(seats.size()); }
  stepping::Seat& seat(int global_rank) { return *seats[static_cast<size_t>(global_rank)]; }

  void start(const stepping::Goal& goal);  // takes the lock

  // REQUIRES: mutex held.
  StepperMode mode() const;
  StepperState state() const;
  bool free() const { return ended || detached; }
  void begin();
  void update_flags();
  void tell();  // announces a change of what state() shows

  // These concern a rank at its boundary.
  void check_events(const stepping::Seat& seat);
  bool condition_holds(const stepping::Seat& seat, const Event& event, std::string_view counter, double value) const;
  void note_conditions(const stepping::Seat& seat, const Event& event, std::string_view counter, double value);
  bool may_pass(const stepping::Seat& seat) const;
  void park(std::unique_lock<std::mutex>& lock, stepping::Seat& seat);

  void stop_running(stepping::Seat& seat, RankActivity now);
  void resume_rank(stepping::Seat& seat);
  void let_all_go();
  void settle();  // called when no rank runs: releases the next ones or pauses the world
  bool release_next();
  bool release_ready();
  void pause_here();
  bool at_goal(const stepping::Seat& seat) const;
  bool in_order(const stepping::Seat& seat) const;
  stepping::Seat* earliest(const std::vector<int>& among);
  stepping::Seat* towards(int global_rank);

  mutable std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::unique_ptr<stepping::Seat>> seats;
  int running = 0;
  bool start_paused = false, pause_requested = false, paused = false, ended = false, detached = false, begun = false;
  stepping::Goal goal;
  int goal_step = 0;  // kStep
  std::vector<stepping::Watched> breakpoints;
  std::vector<BreakpointHit> hits;
  int next_id = 1;
  uint64_t version = 1;

  std::atomic<bool> hold{false};        // every boundary is checked
  std::atomic<int> order_from_step{0};  // boundaries of this step and later ones are checked
  std::atomic<bool> conditions{false};  // some breakpoint has a condition
};

}  // namespace ranklab
